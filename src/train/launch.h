#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/control_block.h"
#include "train/failure.h"
#include "train/progress.h"
#include "train/run_status.h"
#include "train/worker_process.h"

namespace cohort {

/// How a run ended, as its launcher saw it.
struct LaunchResult {
  std::vector<WorkerFailure> failures;   ///< That ended the run, first cause first.
  std::vector<WorkerFailure> recovered;  ///< That it survived, in the order of time.
  std::int64_t restarts = 0;
  int signal = 0;  ///< That the user stopped the run with, or 0.
};

/// Starts a process per plan, watches them until the last has ended, and passes on what the user
/// wants: the first Ctrl-C, SIGTERM or SIGUSR1 lets all workers stop together after their step, the
/// second ends them at once.
///
/// A task that is lost is replaced, within limits, and the workers form a new group (see
/// Membership). Where that cannot be, the rest saves what it has; where nothing can be saved the
/// others get a moment to notice the loss and are then ended.
struct Launch {
  const WorkerRun& run;
  const std::vector<ProcessPlan>& plans;
  Rendezvous& rendezvous;
  Progress& progress;
  RunStatus& status;
  bool regroups = true;  ///< The workers are this launcher's own processes.
  std::function<std::filesystem::path(const ProcessPlan& plan)> log_of;
  /// Once no server runs, before those of the next group are started.
  std::function<void()> settle_servers = {};
};
LaunchResult launch_workers(const Launch& launch);

}  // namespace cohort
