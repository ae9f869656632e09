#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace cohort {

/// The longest a task may be busy with one thing other than a step before it counts as stuck.
constexpr Duration kLongestWork = std::chrono::minutes(10);

/// What a task may wait for that others must do.
enum class WaitFor : std::uint8_t {
  nothing,  ///< It does not wait.
  sum,
  word,
  chiefs_model,
  gradients,
  bucket,  ///< Activity::index is its number.
  servers_update,
  servers_work,
  servers_parameters,
};

/// What a task may be busy with instead of making steps.
enum class BusyWith : std::uint8_t {
  nothing,  ///< It is at its steps.
  checkpoint,
  group,
  saving,
};

/// In words, to follow "waiting for rank 2,": "sum over the workers". Also for a number that is
/// none of them, since it comes from another process.
const char* words_of(WaitFor what);
/// To follow "rank 2 is": "saving".
const char* words_of(BusyWith what);

/// What a task stands still for, or is busy with instead of making steps, where another process can
/// see it: numbers only, which mean the same wherever they are read. Times are ticks of Clock, of
/// one host.
struct Activity {
  std::atomic<WaitFor> waiting{WaitFor::nothing};
  std::atomic<int> index{-1};  ///< Which of several such things; -1: there is one.
  std::atomic<std::int64_t> since{0};

  std::atomic<BusyWith> working{BusyWith::nothing};
  std::atomic<std::int64_t> working_since{0};

  /// Of a task that is not there any more.
  void clear() {
    waiting.store(WaitFor::nothing);
    working.store(BusyWith::nothing);
  }

  /// Whether it is busy with something that may take this long.
  bool is_working(Clock::time_point now) const {
    if (working.load(std::memory_order_acquire) == BusyWith::nothing) return false;
    return now - Clock::time_point(Duration(working_since.load())) < kLongestWork;
  }
};

/// While it lives its task is busy with one thing other than a step, which takes its time but comes
/// to an end: whoever waits for the task has patience meanwhile.
class Working {
 public:
  Working(Activity& activity, BusyWith what) : activity_(activity) {
    activity_.working_since.store(Clock::now().time_since_epoch().count());
    activity_.working.store(what, std::memory_order_release);
  }
  ~Working() { activity_.working.store(BusyWith::nothing, std::memory_order_release); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  Activity& activity_;
};

/// While it lives its task is waiting for others. Does nothing where there is no activity.
class Waiting {
 public:
  /// `index` where there are several such things: a bucket's number.
  Waiting(Activity* activity, WaitFor what, int index = -1) : activity_(activity) {
    if (activity_ == nullptr) return;
    activity_->index.store(index, std::memory_order_relaxed);
    activity_->since.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    activity_->waiting.store(what, std::memory_order_release);
  }
  ~Waiting() {
    if (activity_ != nullptr) activity_->waiting.store(WaitFor::nothing, std::memory_order_release);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Activity* activity_;
};

}  // namespace cohort
