#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace cohort {

/// What a worker stands still for or is busy with, where others can see it. Every worker has one
/// Activity in memory that it shares with its launcher (launch/control/cards.h). The worker writes
/// it, by Waiting and Working below; the launcher clears it when the worker is gone, and reads it
/// when steps stop coming: it then says who waits for what since when, and has patience with who is
/// busy. Everything in it is a number of fixed meaning, because the reader is another process.

/// The longest a task may be busy with one thing other than a step before it counts as stuck.
constexpr Duration kLongestWork = std::chrono::minutes(10);

/// What a task may wait for that others must do. The words for each stand in activity.cc.
enum class WaitFor : std::uint8_t {
  nothing,       ///< It does not wait.
  sum,           ///< Of numbers of all workers.
  word,          ///< What the workers tell each other.
  chiefs_model,  ///< At the beginning of a group.
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
  group,  ///< It forms one with others.
  saving,
};

/// In words, to follow "waiting for rank 2,": "sum over the workers". Never fails: the number comes
/// from another process, and one that is none of them is "something unknown".
const char* words_of(WaitFor what);
/// To follow "rank 2 is": "saving".
const char* words_of(BusyWith what);

/// See above. Times are ticks of Clock, which can be compared within one host only. What is waited
/// for is stored last and read first, so a reader never pairs it with older `index` and `since`;
/// it may pair it with newer ones, if the next wait began meanwhile, which does no harm in a
/// report.
struct Activity {
  std::atomic<WaitFor> waiting{WaitFor::nothing};
  std::atomic<int> index{-1};  ///< Which of several such things; -1: there is one.
  std::atomic<std::int64_t> since{0};

  std::atomic<BusyWith> working{BusyWith::nothing};
  std::atomic<std::int64_t> working_since{0};

  /// For a task that is not there any more.
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

/// While it lives its task is waiting for others. Does nothing where there is no activity (a task
/// that nobody watches). One at a time for each task: the inner of two would end both.
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
