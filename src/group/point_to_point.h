#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "group/array.h"
#include "group/pending.h"
#include "transport/transport.h"

namespace cohort::group {

/// Messages between two ranks of a group. Both ends show each other their calls, so that a send
/// and a receive that do not belong together are the same Error(invalid) on both, and a send is done
/// when its receive has been called and the bytes may be used again.
///
///   sender                      receiver
///     │── its call ───────────────▶│      started at once by both, whoever comes first;
///     │◀────────────── its call ───│      matched by their order between the two ranks
///     │── content ────────────────▶│
///
/// Everything is started together, the content too, whose tag has its size: where the sizes differ
/// it never meets, and the calls tell why. So messages that were started move on while their rank
/// waits for others or computes. Where bytes move only inside of calls (Transport::progress), a
/// thread of its own makes these as long as a message that was started is under way.
///
/// One thread at a time, but for abandon(), which is to be called after any Error: until then what
/// is under way still moves, to and from arrays that are kept for it.
class PointToPoint {
 public:
  /// For how long a message waits where nobody says: `timeout`.
  PointToPoint(std::unique_ptr<transport::Transport> transport, Timeout timeout);
  ~PointToPoint();
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;

  /// Sends the array to call.peer or receives it from there, as the call says. It is kept until it
  /// has been waited for: a transport does not say what is done without waiting for it.
  std::shared_ptr<Pending> start(const Call& call, const Array& array);

  /// Any thread: this rank takes part no longer. What it waits for ends with an Error, and so does
  /// what others wait for with it.
  void abandon() noexcept { transport_->close(); }

 private:
  class Message;

  void keep_moving();
  void move(std::stop_token stop);

  const std::unique_ptr<transport::Transport> transport_;
  const Timeout timeout_;
  std::mutex mutex_;  // Of the transport, but for close(), and of what follows.
  std::condition_variable_any started_;
  bool moving_ = false;  // Something needs calls of progress().
  std::vector<std::shared_ptr<Message>> under_way_;
  std::jthread mover_;  // Last, so that it ends before what it uses goes.
};

}  // namespace cohort::group
