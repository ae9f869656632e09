#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace cohort {

/// What a task stands still for, where another process of its host can see it: names are string
/// literals, at the same place in all processes forked from one.
struct Activity {
  std::atomic<const char*> waiting{nullptr};  ///< Null while it does not wait.
  std::atomic<int> index{-1};                 ///< Which of several such things; -1: there is one.
  std::atomic<std::int64_t> since{0};         ///< Ticks of Clock; one clock for all processes.
};

/// While it lives its task is waiting for others. Does nothing where there is no activity.
class Waiting {
 public:
  /// `what` is a literal, as in "all-reduce of bucket"; then `index` is the bucket's number.
  Waiting(Activity* activity, const char* what, int index = -1) : activity_(activity) {
    if (activity_ == nullptr) return;
    activity_->index.store(index, std::memory_order_relaxed);
    activity_->since.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    activity_->waiting.store(what, std::memory_order_release);
  }
  ~Waiting() {
    if (activity_ != nullptr) activity_->waiting.store(nullptr, std::memory_order_release);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Activity* activity_;
};

}  // namespace cohort
