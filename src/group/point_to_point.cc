#include "group/point_to_point.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <utility>

#include "base/fail.h"

namespace cohort::group {
namespace {

/// What a message is, in the lowest bits of its tag. Between two ranks there are messages in both
/// directions, so the sender's call and the receiver's have tags of their own.
enum class Kind : transport::Tag { senders_call, receivers_call, content };

transport::Tag tag_of(Kind kind, std::size_t bytes) {
  return bytes << 2 | static_cast<transport::Tag>(kind);
}

constexpr auto kBetweenMoves = std::chrono::microseconds(100);

}  // namespace

class PointToPoint::Message : public Pending {
 public:
  Message(PointToPoint& all, const Call& call, const Array& array)
      : Pending(call), all_(all), array_(array) {}

  void start() {
    const bool sends = call().operation == Operation::send;
    const int peer = call().peer;
    transport::Transport& transport = *all_.transport_;
    const auto tag = [&](bool senders) {
      return tag_of(senders ? Kind::senders_call : Kind::receivers_call, sizeof(Call));
    };
    their_call_ = transport.irecv(peer, tag(!sends), theirs_);
    own_call_ = transport.isend(peer, tag(sends), std::as_bytes(std::span(&call(), 1)));
    if (array_.bytes.empty()) return;
    const auto content_tag = tag_of(Kind::content, array_.bytes.size());
    content_ = sends ? transport.isend(peer, content_tag, array_.bytes)
                     : transport.irecv(peer, content_tag, array_.bytes);
  }

  void wait(std::optional<Deadline> deadline) override {
    const std::lock_guard lock(all_.mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (done_) return;
    try {
      finish(deadline.value_or(all_.timeout_.deadline()));
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
    done_ = true;
    std::erase_if(all_.under_way_, [this](const auto& message) { return message.get() == this; });
  }

 private:
  void finish(Deadline deadline) {
    transport::Transport& transport = *all_.transport_;
    transport.wait(*their_call_, deadline);
    compare(call_in(theirs_, call().peer), transport.rank());
    transport.wait(*own_call_, deadline);
    if (content_) transport.wait(*content_, deadline);
  }

  void compare(const Call& theirs, int self) const {
    const bool sends = call().operation == Operation::send;
    const std::string wrong = sends ? mismatch(call(), self, theirs, call().peer)
                                    : mismatch(theirs, call().peer, call(), self);
    if (wrong.empty()) return;
    throw Error(ErrorCode::invalid, wrong).about_rank(sends ? call().peer : self);
  }

  PointToPoint& all_;
  const Array array_;
  std::array<std::byte, sizeof(Call)> theirs_ = {};
  transport::OperationPtr their_call_, own_call_, content_;
  bool done_ = false;
  std::exception_ptr failure_;
};

PointToPoint::PointToPoint(std::unique_ptr<transport::Transport> transport, Timeout timeout)
    : transport_(std::move(transport)), timeout_(std::move(timeout)) {}

PointToPoint::~PointToPoint() {
  abandon();  // Before the bytes of what nobody has waited for go.
}

std::shared_ptr<Pending> PointToPoint::start(const Call& call, const Array& array) {
  const auto message = std::make_shared<Message>(*this, call, array);
  const std::lock_guard lock(mutex_);
  under_way_.push_back(message);
  message->start();
  if (transport_->progress()) keep_moving();
  return message;
}

void PointToPoint::keep_moving() {
  moving_ = true;
  if (!mover_.joinable()) mover_ = std::jthread([this](std::stop_token stop) { move(stop); });
  started_.notify_all();
}

// Whoever waits for a message has the lock as long as it waits, and moves everything meanwhile.
void PointToPoint::move(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (started_.wait(lock, stop, [&] { return moving_; }) && !stop.stop_requested()) {
    moving_ = transport_->progress();
    lock.unlock();
    std::this_thread::sleep_for(kBetweenMoves);
    lock.lock();
  }
}

}  // namespace cohort::group
