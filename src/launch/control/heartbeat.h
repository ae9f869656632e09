#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/deadline.h"
#include "launch/control/cards.h"

// The sign of life: a count on a task's card that a thread of the task raises five times a second
// (Heartbeat), and that the launcher looks at (Pulse). Because the thread does nothing else, a long
// step is not taken for a death; only a process that is stopped or gone falls silent.

namespace cohort::launch {

/// The task's end: while it lives its task gives the sign. `task` outlives it.
class Heartbeat {
 public:
  explicit Heartbeat(TaskCard& task)
      : thread_([this, &task](const std::stop_token& stop) { beat(task, stop); }) {}

 private:
  void beat(TaskCard& task, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      task.heartbeats.fetch_add(1, std::memory_order_relaxed);
      pause_.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; });
    }
  }

  std::mutex mutex_;
  std::condition_variable_any pause_;
  std::jthread thread_;  // Last, so that it ends before what it uses goes.
};

/// The launcher's end, of one task. It measures with the launcher's clock only, so clocks need not
/// agree; a launcher that was stopped itself begins anew (Tasks::end_silent).
class Pulse {
 public:
  explicit Pulse(Clock::time_point now) : last_(now) {}

  /// Looks at the count again. Returns for how long it has stood still.
  Duration silence(std::uint64_t count, Clock::time_point now) {
    if (count != count_) {
      count_ = count;
      last_ = now;
    }
    return now - last_;
  }

 private:
  std::uint64_t count_ = 0;
  Clock::time_point last_;  // When the count was first seen as it is.
};

}  // namespace cohort::launch
