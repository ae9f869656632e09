#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace cohort::chaos {

/// What chaos does to a training from outside: signals, stops, and a disk that does not answer.
/// None of it needs the training's help. A disturbance and a slow disk put things right when they
/// are destroyed, so that nothing stays stopped after an error. All are used by one thread.

/// A process that is held, so that signals reach it and never another one that got its number.
/// Where it has ended already, or never was, it is held as one that has ended.
class HeldProcess {
 public:
  explicit HeldProcess(pid_t pid);

  /// False where it has ended.
  bool signal(int signal) const;
  bool has_ended() const;

 private:
  UniqueFd handle_;  // A pidfd.
};

/// Stops a process for a while, wholly or most of the time. Whoever owns this calls tick() every
/// few milliseconds; the process goes on when the time is over or this is destroyed.
class Disturbance {
 public:
  /// `slow`: of every 100 ms it is stopped for 90, so it takes ten times as long for everything.
  enum class Kind { freeze, slow };

  /// Begins at once.
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

/// A disk that keeps the checkpoints of a run waiting for as long as it is held: a library that is
/// loaded before all others into the run's processes (tests/slow_disk.cc) delays fsync below the
/// folder `checkpoints` while a file, the *gate*, exists. Whoever has to wait makes a second file
/// beside it, so that a fault can come exactly then. The gate is beside the run's folder, not in
/// it.
class SlowDisk {
 public:
  /// Without a library it does nothing.
  SlowDisk(const std::filesystem::path& library, const std::filesystem::path& run_dir);
  ~SlowDisk() { release(); }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;

  /// What the run's environment needs, as NAME=VALUE; empty without a library.
  const std::vector<std::string>& environment() const { return environment_; }

  void hold();
  /// Since it is held, somebody has come to wait for the disk.
  bool keeps_waiting() const;
  void release() noexcept;

 private:
  std::filesystem::path gate_;
  std::vector<std::string> environment_;
};

}  // namespace cohort::chaos
