#pragma once

#include <cstdint>

#include "base/deadline.h"

namespace cohort {

/// How long a worker that was asked to pause may stand still before it is ended for the others'
/// sake. Longer than they wait for one that does not come: who waits for it in vain pauses first.
inline Duration pause_patience(Duration timeout) {
  return timeout * 3 / 2;
}

/// StopGrace's `quiet`: longer than pause_patience(), so that the others can still save when one is
/// stuck and was ended.
inline Duration quiet_before_end(Duration timeout) {
  return pause_patience(timeout) + std::chrono::seconds(30);
}

/// How long workers that were told to stop may take to come to the end of their step and to save:
/// as long as they get on. They are given up when none has moved (see Movement) for `quiet`, or for
/// three of their steps where those take longer; and after kMost in any case.
class StopGrace {
 public:
  static constexpr Duration kMost = std::chrono::minutes(10);

  StopGrace(Clock::time_point now, Duration quiet) : begin_(now), moved_(now), quiet_(quiet) {}

  /// Asked again and again. `step` is what a step of the slowest worker takes; 0: nobody knows.
  bool is_over(Clock::time_point now, bool moved, Duration step) {
    if (moved) moved_ = now;
    return now - moved_ >= std::max(quiet_, 3 * step) || now - begin_ >= kMost;
  }

 private:
  Clock::time_point begin_;
  Clock::time_point moved_;
  Duration quiet_;
};

/// The step to stop after where workers come together every so many steps, and the furthest is on
/// its way to `furthest`: the next such step where that is near, because a run that is resumed
/// there goes on as if it had never stopped; otherwise `furthest`. `step` is what a step takes; 0:
/// nobody knows.
inline std::int64_t good_last_step(std::int64_t furthest, std::int64_t every, Duration step) {
  constexpr Duration kNear = std::chrono::seconds(5);
  const std::int64_t left = (every - furthest % every) % every;
  const bool near = left == 0 || (step > Duration::zero() && left <= kNear / step);
  return near ? furthest + left : furthest;
}

}  // namespace cohort
