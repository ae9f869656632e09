#pragma once

#include <optional>
#include <vector>

#include "train/compute_threads.h"
#include "train/rendezvous.h"
#include "train/worker.h"

namespace cohort {

/// Which workers a process runs: one rank, or all of them as threads (in-graph replication).
struct ProcessPlan {
  std::vector<int> ranks;
  int world = 1;
  bool remote = false;  ///< Other ranks have launchers of their own.
  LocalPlace place;     ///< Of the process among those of its host; found out where `remote`.
};

/// The whole life of a worker process after fork(). Returns its exit code; what went wrong is in
/// the slots of its ranks.
int run_worker_process(const WorkerRun& run, const ProcessPlan& plan, const Rendezvous& rendezvous);

}  // namespace cohort
