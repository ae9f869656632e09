#pragma once

#include <sys/types.h>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace cohort {

/// A process that is held, so that signals reach it and never another one that got its number.
class HeldProcess {
 public:
  explicit HeldProcess(pid_t pid);

  /// False where it has ended.
  bool signal(int signal) const;
  bool has_ended() const;

 private:
  UniqueFd handle_;
};

/// Stops a process for a while, wholly or most of the time. Whoever owns this calls tick() every
/// few milliseconds; the process goes on when the time is over or this is destroyed.
class Disturbance {
 public:
  /// `slow`: of every 100 ms it is stopped for 90, so it takes ten times as long for everything.
  enum class Kind { freeze, slow };

  Disturbance(pid_t pid, Kind kind, double seconds);
  ~Disturbance();
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;

  void tick();
  /// The time is over, or the process has ended.
  bool over() const { return over_; }

 private:
  void set_stopped(bool stopped);

  HeldProcess process_;
  Kind kind_;
  Clock::time_point start_ = Clock::now();
  Deadline end_;
  bool stopped_ = false;
  bool over_ = false;
};

}  // namespace cohort
