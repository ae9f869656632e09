#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "launch/control/control_block.h"

namespace cohort {

/// While it lives its task shows that it does, on a thread of its own: so a long step is not taken
/// for a death, and only a process that is stopped or gone falls silent.
class Heartbeat {
 public:
  explicit Heartbeat(TaskSlot& task)
      : thread_([this, &task](const std::stop_token& stop) { beat(task, stop); }) {}

 private:
  void beat(TaskSlot& task, const std::stop_token& stop) {
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

}  // namespace cohort
