#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster/child_processes.h"
#include "train/control_block.h"
#include "train/failure.h"
#include "train/progress.h"
#include "train/worker_process.h"

namespace cohort {

/// How all workers of this launcher ended.
struct LaunchResult {
  std::vector<WorkerFailure> failures;  ///< First cause first; empty where all went well.
  int signal = 0;                       ///< That the user stopped the run with, or 0.
};

/// Starts a process per plan, watches them until the last has ended, and passes on what the user
/// wants: the first Ctrl-C or SIGTERM lets all workers stop together after their step, the second
/// ends them at once. When one fails, the others get a moment to notice it and are then ended.
struct Launch {
  const WorkerRun& run;
  const std::vector<ProcessPlan>& plans;
  Rendezvous& rendezvous;
  Progress& progress;
  std::function<std::filesystem::path(const ProcessPlan& plan)> log_of;
};
LaunchResult launch_workers(const Launch& launch);

}  // namespace cohort
