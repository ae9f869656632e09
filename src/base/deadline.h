#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>

namespace cohort {

/// How long a call may wait for others. Whoever begins a piece of work makes a Deadline, which is
/// a moment, and hands it down, so that all calls of the piece together keep to one limit. A
/// Timeout is a length: of one wait for a peer, for each of which a Deadline is made of it.

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;

/// The moment after which a blocking call gives up. Passed by value down a chain of calls. A call
/// that finds it passed throws Error(timeout) naming what it waited for, or returns false where its
/// comment says so.
class Deadline {
 public:
  static Deadline in(Duration duration) { return Deadline(Clock::now() + duration); }
  static Deadline in_seconds(double seconds) {
    return in(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  }

  bool passed() const { return Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }

  /// Never negative, so that it can be given to a system call as it is.
  Duration remaining() const { return std::max(at_ - Clock::now(), Duration::zero()); }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}

  Clock::time_point at_;
};

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The longest that one call waits for a peer that lives. Copies share one value, so that a worker
/// can give everything that waits on its behalf more time for a while: where a peer is busy with
/// something long that is known to end (it makes a large model, or saves), being late says nothing
/// about it. That a peer has died or is frozen is noticed by other means (os/peer_watch.h, and
/// the launcher, which watches the steps). Any thread may ask for a deadline; Longer is for one
/// thread at a time, and objects of it must end in the reverse order of their beginning.
class Timeout {
 public:
  Timeout() : Timeout(std::chrono::seconds(60)) {}
  template <class Rep, class Period>
  Timeout(std::chrono::duration<Rep, Period> usual)
      : usual_(std::chrono::duration_cast<Duration>(usual)),
        now_(std::make_shared<std::atomic<Duration::rep>>(usual_.count())) {}

  Duration usual() const { return usual_; }
  /// For a wait that begins now.
  Deadline deadline() const { return Deadline::in(Duration(now_->load())); }

  /// While it lives, waits that begin have at least this much time. Waits that began before keep
  /// the deadline they have.
  class Longer {
   public:
    Longer(const Timeout& timeout, Duration at_least)
        : now_(timeout.now_), before_(now_->exchange(std::max(at_least, timeout.usual_).count())) {}
    ~Longer() { now_->store(before_); }
    Longer(const Longer&) = delete;
    Longer& operator=(const Longer&) = delete;

   private:
    std::shared_ptr<std::atomic<Duration::rep>> now_;
    Duration::rep before_;
  };

 private:
  Duration usual_;
  std::shared_ptr<std::atomic<Duration::rep>> now_;  // Ticks; shared by all copies.
};

}  // namespace cohort
