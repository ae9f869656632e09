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

namespace cohort::chaos {

/// A training that is watched while faults happen to it: how far it is, whether it hangs, and what
/// it leaves behind. It puts together the process, its files, what it holds, and a disturbance:
///
///   pump()   every 5 ms: reads the exit code and the files, lets the disturbance tick, notes what
///            the processes hold (when they change, and every half second), kills a run that hangs
///
/// Used by one thread, which calls pump() until the run is over, and then problems() once.
/// Destroying it earlier kills the run.
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
  /// ended: all children of this process are taken for such, so adopt_orphans() must have been
  /// called and nobody else may have started any.
  std::vector<std::string> problems();

 private:
  void note_processes();
  void end_hanging();
  /// Waits up to 2 s for all processes that the run has left, then kills them, a problem each.
  void end_processes();

  const double hang_seconds_;
  RunWatch watch_;
  TrainingProcess training_;
  std::optional<int> exit_code_;
  std::unique_ptr<Disturbance> disturbance_;
  // A run that does not even begin hangs, too: the clock starts with it.
  std::int64_t last_step_ = 0;
  Clock::time_point last_progress_ = Clock::now();
  // The launcher and the tasks that run now, as far as is known, and what they have held.
  std::set<pid_t> processes_;
  Belongings belongings_;
  Clock::time_point noted_ = Clock::now();
  std::vector<std::string> problems_;
};

}  // namespace cohort::chaos
