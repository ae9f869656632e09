#pragma once

#include <atomic>
#include <memory>

#include "base/deadline.h"

namespace cohort {

/// The longest one call waits for a peer that lives. Copies share one value, so that a worker can
/// give everything that waits on its behalf more time for a while: where a peer is at something
/// long that is known to end (it makes a large model, or saves), lateness says nothing. That the
/// peer died or froze is noticed otherwise.
class Timeout {
 public:
  Timeout() : Timeout(std::chrono::seconds(60)) {}
  template <class Rep, class Period>
  Timeout(std::chrono::duration<Rep, Period> usual)
      : usual_(std::chrono::duration_cast<Duration>(usual)),
        now_(std::make_shared<std::atomic<Duration::rep>>(usual_.count())) {}

  Duration usual() const { return usual_; }
  /// Of a wait that begins now.
  Deadline deadline() const { return Deadline::in(Duration(now_->load())); }

  /// While it lives, waits that begin have at least this much time.
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
  std::shared_ptr<std::atomic<Duration::rep>> now_;
};

}  // namespace cohort
