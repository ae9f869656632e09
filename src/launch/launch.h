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

namespace cohort {

/// How a run ended, as its launcher saw it.
struct LaunchResult {
  std::vector<WorkerFailure> failures;   ///< That ended the run, first cause first.
  std::vector<WorkerFailure> recovered;  ///< That it survived, in the order of time.
  std::int64_t restarts = 0;
  int signal = 0;  ///< That the user stopped the run with, or 0.
};

/// Starts a process per plan (what it does is not this room's business), watches them until the
/// last has ended, and passes on what is asked for: the first request to stop lets all workers stop
/// together after their step, the second ends them at once.
///
/// A task that is lost is replaced, within limits, and the workers form a new group (see
/// Membership). Where that cannot be, the rest saves what it has; where nothing can be saved the
/// others get a moment to notice the loss and are then ended.
struct Launch {
  const ClusterOptions& cluster;
  StrategyTraits traits = {};
  /// Where workers make steps alone and come together now and then: after how many.
  std::int64_t steps_alone = 1;
  ControlBlock& control;
  Processes& processes;
  const std::vector<ProcessPlan>& plans;  ///< Of those that are started first.
  Progress& progress;
  RunStatus& status;
  Requests& requests;
  bool regroups = true;  ///< The workers are this launcher's own processes.
  std::function<std::filesystem::path(const ProcessPlan& plan)> log_of;
  /// Lets the tasks find each other, once the first are started.
  std::function<void()> serve = {};
  /// Once no server runs, before those of the next group are started.
  std::function<void()> settle_servers = {};
};
LaunchResult launch_workers(const Launch& launch);

}  // namespace cohort
