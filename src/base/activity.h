#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace cohort {

/// The longest a task may be busy with one thing other than a step before it counts as stuck.
constexpr Duration kLongestWork = std::chrono::minutes(10);

/// What a task stands still for, or is busy with instead of making steps, where another process of
/// its host can see it: names are string literals, at the same place in all processes forked from
/// one. Times are ticks of Clock; one clock for all processes.
struct Activity {
  std::atomic<const char*> waiting{nullptr};  ///< Null while it does not wait.
  std::atomic<int> index{-1};                 ///< Which of several such things; -1: there is one.
  std::atomic<std::int64_t> since{0};

  std::atomic<const char*> working{nullptr};  ///< Null while it is at its steps.
  std::atomic<std::int64_t> working_since{0};

  /// Of a task that is not there any more.
  void clear() {
    waiting.store(nullptr);
    working.store(nullptr);
  }

  /// Whether it is busy with something that may take this long.
  bool is_working(Clock::time_point now) const {
    if (working.load(std::memory_order_acquire) == nullptr) return false;
    return now - Clock::time_point(Duration(working_since.load())) < kLongestWork;
  }
};

/// While it lives its task is busy with one thing other than a step, which takes its time but comes
/// to an end: whoever waits for the task has patience meanwhile.
class Working {
 public:
  /// `what` is a literal, as in "saving".
  Working(Activity& activity, const char* what) : activity_(activity) {
    activity_.working_since.store(Clock::now().time_since_epoch().count());
    activity_.working.store(what, std::memory_order_release);
  }
  ~Working() { activity_.working.store(nullptr, std::memory_order_release); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  Activity& activity_;
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
