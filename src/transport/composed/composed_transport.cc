#include "transport/composed/composed_transport.h"

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace cohort {
namespace {

/// Knows which of the two has begun it.
struct ComposedOperation : Operation {
  ComposedOperation(Transport& by, OperationPtr operation) : way(by), inner(std::move(operation)) {}

  Transport& way;
  OperationPtr inner;
};

/// A thread that waits, so that the one that would can do something else meanwhile.
class Waiter {
 public:
  /// Waits in `transport` for the operation; calls `meanwhile` again and again until then.
  template <class Meanwhile>
  void wait(Transport& transport, Operation& operation, Deadline deadline, Meanwhile&& meanwhile) {
    constexpr auto kPause = std::chrono::microseconds(50);
    std::unique_lock lock(mutex_);
    failure_ = nullptr;
    work_ = [&transport, &operation, deadline] { transport.wait(operation, deadline); };
    changed_.notify_all();
    while (work_) {
      lock.unlock();
      const bool again = meanwhile();
      lock.lock();
      const auto is_done = [this] { return !work_; };
      if (again) {
        changed_.wait_for(lock, kPause, is_done);
      } else {
        changed_.wait(lock, is_done);
      }
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return static_cast<bool>(work_); })) {
      lock.unlock();
      std::exception_ptr failure;
      try {
        work_();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::function<void()> work_;
  std::exception_ptr failure_;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};  // Last: it ends first.
};

class ComposedTransport : public Transport {
 public:
  ComposedTransport(std::unique_ptr<Transport> inside, std::unique_ptr<Transport> outside,
                    std::vector<int> hosts)
      : inside_(std::move(inside)), outside_(std::move(outside)), hosts_(std::move(hosts)) {}

  ~ComposedTransport() override { ComposedTransport::close(); }

  int rank() const override { return outside_->rank(); }
  int size() const override { return outside_->size(); }

  OperationPtr isend(int peer, Tag tag, std::span<const std::byte> bytes) override {
    Transport& way = way_to(peer);
    return std::make_unique<ComposedOperation>(way, way.isend(peer, tag, bytes));
  }

  OperationPtr irecv(int peer, Tag tag, std::span<std::byte> bytes) override {
    Transport& way = way_to(peer);
    return std::make_unique<ComposedOperation>(way, way.irecv(peer, tag, bytes));
  }

  /// Who waits for another host must not keep those of this host waiting, whose messages move only
  /// while this rank helps.
  void wait(Operation& operation, Deadline deadline) override {
    auto& composed = static_cast<ComposedOperation&>(operation);
    Transport& way = composed.way;
    if (&way == inside_.get() || !inside_->progress()) return way.wait(*composed.inner, deadline);
    if (!waiter_) waiter_.emplace();
    waiter_->wait(way, *composed.inner, deadline, [this] { return inside_->progress(); });
  }

  bool progress() noexcept override { return inside_->progress(); }

  void close() noexcept override {
    inside_->close();
    outside_->close();
  }

  std::uint64_t bytes_sent() const override {
    return inside_->bytes_sent() + outside_->bytes_sent();
  }
  std::uint64_t bytes_received() const override {
    return inside_->bytes_received() + outside_->bytes_received();
  }

 private:
  /// Who is no peer at all is refused by either.
  Transport& way_to(int peer) const {
    const bool exists = peer >= 0 && peer < size();
    return exists && host_of(peer) == host_of(rank()) ? *inside_ : *outside_;
  }

  int host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  std::unique_ptr<Transport> inside_;
  std::unique_ptr<Transport> outside_;
  std::vector<int> hosts_;
  std::optional<Waiter> waiter_;  // Made when it is needed; ends before what it waits in.
};

}  // namespace

std::unique_ptr<Transport> compose_transports(std::unique_ptr<Transport> inside,
                                              std::unique_ptr<Transport> outside,
                                              std::vector<int> hosts) {
  return std::make_unique<ComposedTransport>(std::move(inside), std::move(outside),
                                             std::move(hosts));
}

}  // namespace cohort
