#pragma once

#include <optional>
#include <vector>

#include "train/compute_threads.h"
#include "train/rendezvous.h"
#include "train/worker.h"

namespace cohort {

/// Which tasks a process runs: one worker (by its number), one server, or all of them as threads
/// (in-graph replication).
struct ProcessPlan {
  std::vector<int> ranks = {};
  std::vector<int> servers = {};
  int world = 1;                ///< Of the group; of workers that can change groups, the first.
  std::int64_t epoch = 1;       ///< The group a worker waits for first, or a server serves.
  bool remote = false;          ///< Other ranks have launchers of their own.
  std::string failpoints = {};  ///< See set_failpoints.
  LocalPlace place = {};  ///< Of the process among those of its host; found out where `remote`.
};

/// The whole life of a process after fork(). Returns its exit code; what went wrong is in the slots
/// of its tasks.
int run_process(const WorkerRun& run, const ProcessPlan& plan, const Rendezvous& rendezvous);

}  // namespace cohort
