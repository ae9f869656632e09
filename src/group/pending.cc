#include "group/pending.h"

#include <exception>

#include "base/fail.h"

namespace cohort::group {

class WorkQueue::Item : public Pending {
 public:
  Item(const Call& call, std::function<void()> work) : Pending(call), work_(std::move(work)) {}

  void run() noexcept {
    try {
      work_();
    } catch (...) {
      failure_ = std::current_exception();
    }
    work_ = {};
  }

  void tell() {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  void wait(std::optional<Deadline> deadline) override {
    std::unique_lock lock(mutex_);
    const auto is_done = [&] { return done_; };
    if (!deadline) {
      changed_.wait(lock, is_done);
    } else if (!changed_.wait_until(lock, deadline->at(), is_done)) {
      fail(ErrorCode::timeout, "{} (call {} of the group) is not done in time", describe(call()),
           call().number);
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::function<void()> work_;
  std::exception_ptr failure_;  // Of the queue's thread until it is done.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Pending> WorkQueue::start(const Call& call, std::function<void()> work) {
  auto item = std::make_shared<Item>(call, std::move(work));
  const std::lock_guard lock(mutex_);
  items_.push_back(item);
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  changed_.notify_all();
  return item;
}

bool WorkQueue::idle() {
  const std::lock_guard lock(mutex_);
  return items_.empty();
}

// An item stays in the queue while it is being done, and leaves before anybody hears that it is, so
// that who waited for the last one finds the queue idle.
void WorkQueue::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !items_.empty(); });
    if (items_.empty()) return;
    const std::shared_ptr<Item> item = items_.front();
    lock.unlock();
    item->run();
    lock.lock();
    items_.pop_front();
    lock.unlock();
    item->tell();
    lock.lock();
  }
}

}  // namespace cohort::group
