#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kinds/strategy_table.h"
#include "launch/control/control_block.h"
#include "launch/failure.h"
#include "launch/processes.h"
#include "launch/progress.h"
#include "launch/requests.h"
#include "launch/run_status.h"

namespace cohort::launch {

/// How a run ended, as its launcher saw it.
struct LaunchResult {
  std::vector<TaskFailure> failures;   ///< That ended the run, first cause first.
  std::vector<TaskFailure> recovered;  ///< That it survived, in the order of time.
  std::int64_t restarts = 0;           ///< Processes started in the place of lost ones.
  int signal = 0;                      ///< That the user stopped the run with, or 0.
};

/// One run's processes, from the first start to the last end.
///
/// Starts a process per plan (what it does is not this room's business), watches them until the
/// last has ended, and passes on what is asked for. One thread does all of it, in rounds:
///
///   wait for a request, a child's end or the next tick (50 ms; 2 ms while workers wait for this
///   process) → handle the request → note who has ended → start who is to be started by now
///   → form groups → tell the user → end all where their time is up
///
/// *A loss.* A task that is lost is replaced, within limits (RestartBudget), and the workers form a
/// new group (Groups). Where it cannot be replaced but enough are left (cluster.min_workers), the
/// others go on without it. Where that cannot be either, the rest saves what it has and the run
/// fails; where nothing can be saved the others get three seconds to notice the loss by themselves
/// (so that their own errors are told) and are then ended. What would happen again to any new
/// process (is_hopeless) is not tried again.
///
/// *A stop.* The first request lets all workers stop together after their step and save, for as
/// long as they get on (StopGrace); the second ends them at once. While a stop is under way nobody
/// is replaced.
///
/// *Without regrouping* (workers that are threads of one process, or that other launchers started)
/// there is one group. One process of threads is started again as a whole; of several launchers
/// each only ends with its worker.
///
/// All that is referred to outlives the call.
struct Launch {
  const ClusterOptions& cluster;
  kinds::StrategyTraits traits =
      {};  ///< Of the job's strategy: whether a loss stops all, and more.
  /// Where workers make steps alone and come together now and then: after how many.
  std::int64_t steps_alone = 1;
  ControlBlock& control;
  Processes& processes;
  const std::vector<ProcessPlan>& plans;  ///< Of those that are started first.
  Progress& progress;
  RunStatus& status;
  Requests& requests;
  bool regroups = true;  ///< The workers are this launcher's own processes.
  /// Where a process' output goes; may be an empty path.
  std::function<std::filesystem::path(const ProcessPlan& plan)> log_of;
  /// Lets the tasks find each other, once the first are started.
  std::function<void()> serve = {};
  /// Once no server runs, before those of the next group are started.
  std::function<void()> reconcile_servers = {};
};
/// Returns when no process runs any more. Throws Error where one of the first cannot be started.
LaunchResult launch_workers(const Launch& launch);

}  // namespace cohort::launch
