#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "chaos/faults/disturbance.h"
#include "chaos/watch/leftovers.h"
#include "chaos/watch/run_watch.h"
#include "chaos/watch/training_process.h"

namespace cohort {

/// A training that is watched while faults happen to it: how far it is, whether it hangs, and what
/// it leaves behind.
class DisturbedRun {
 public:
  /// `words` follow `cohort train`; the run hangs when it makes no step for so long. `environment`:
  /// see TrainingProcess.
  DisturbedRun(const std::vector<std::string>& words, const std::filesystem::path& run_dir,
               double hang_seconds, const std::vector<std::string>& environment = {});

  /// Waits a moment and looks at everything. A run that hangs is ended.
  void pump();

  bool over() const { return exit_code_.has_value(); }
  /// Once it is over.
  int exit_code() const { return *exit_code_; }
  bool ended_well() const { return exit_code_ == 0; }

  const RunWatch& watch() const { return watch_; }

  /// From now on, until it is over or the next one begins.
  void disturb(std::unique_ptr<Disturbance> disturbance) { disturbance_ = std::move(disturbance); }
  bool is_disturbed() const { return disturbance_ && !disturbance_->over(); }

  /// Notes what the run's processes hold now, to look for it at the end. Done now and then anyway.
  void note_belongings() { belongings_.note(processes_); }

  /// Once it is over: a hang, and what is left of it, a sentence each. Processes that are left are
  /// ended.
  std::vector<std::string> problems();

 private:
  void note_processes();
  void end_hanging();
  void end_processes();

  const double hang_seconds_;
  RunWatch watch_;
  TrainingProcess training_;
  std::optional<int> exit_code_;
  std::unique_ptr<Disturbance> disturbance_;
  std::int64_t last_step_ = 0;
  Clock::time_point last_progress_ = Clock::now();
  std::set<pid_t> processes_;  // That run now, as far as is known.
  Belongings belongings_;
  Clock::time_point noted_ = Clock::now();
  std::vector<std::string> problems_;
};

}  // namespace cohort
