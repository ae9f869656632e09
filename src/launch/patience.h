#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "launch/control/control_block.h"

// How long a launcher waits for workers that were asked to pause or to stop: as long as they get
// on. A heartbeat says only that a process is there; a worker *moves* where it makes steps,
// validates, comes to another state, or is busy with one of the long things between steps (Working
// in base/activity.h). Who does none of these for long is stuck, or waits for somebody who is.
//
// The three times that belong together, for a job's cluster.timeout_seconds T:
//
//   T          after which a worker gives up waiting for a peer and leaves its group
//   1.5 T      after which a worker that was asked to pause and does not move is ended
//   1.5 T+30s  after which a stop gives up on workers of which none moves
//
// Each is longer than the one before, so that whoever only waits is never ended in place of the one
// it waits for, and so that there is time left to save after the stuck one was ended.

namespace cohort::launch {

/// Whether workers get on, as their launcher sees it. For one thread.
class Movement {
 public:
  /// Whether one of these workers has moved since the last call, or is busy with something long.
  /// True in the first call.
  bool look(const ControlBlock& control, std::span<const int> workers, Clock::time_point now);

 private:
  std::optional<std::int64_t> last_;  // A sum over steps and states: it differs where one moved.
};

/// Of these workers those that stand in the way: that do not wait for another one. All of them
/// where all wait.
std::vector<int> in_the_way(const ControlBlock& control, std::span<const int> workers);

/// How long a worker that was asked to pause may stand still before it is ended for the others'
/// sake: 1.5 T.
inline Duration pause_patience(Duration timeout) {
  return timeout * 3 / 2;
}

/// StopGrace's `quiet`: 1.5 T + 30 s.
inline Duration quiet_before_end(Duration timeout) {
  return pause_patience(timeout) + std::chrono::seconds(30);
}

/// How long workers that were told to stop may take to come to the end of their step and to save.
/// They are given up when none has moved for `quiet`, or for three of their steps where those take
/// longer; and after kMost in any case.
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
  Clock::time_point moved_;  // The last time that one had.
  Duration quiet_;
};

/// The step to stop after where workers come together every `every` steps, and the furthest is on
/// its way to `furthest`: the next such step where it is at most five seconds away, because a run
/// that is resumed there goes on as if it had never stopped; otherwise `furthest`. `step` is what a
/// step takes; 0: nobody knows.
inline std::int64_t good_last_step(std::int64_t furthest, std::int64_t every, Duration step) {
  constexpr Duration kNear = std::chrono::seconds(5);
  const std::int64_t left = (every - furthest % every) % every;
  const bool near = left == 0 || (step > Duration::zero() && left <= kNear / step);
  return near ? furthest + left : furthest;
}

}  // namespace cohort::launch
