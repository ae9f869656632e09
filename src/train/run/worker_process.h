#pragma once

#include <optional>
#include <vector>

#include "launch/process_plan.h"
#include "train/run/compute_threads.h"
#include "train/run/rendezvous.h"
#include "train/worker.h"

namespace cohort {

/// The whole life of a process after fork(). Returns its exit code; what went wrong is in the slots
/// of its tasks.
int run_process(const WorkerRun& run, const ProcessPlan& plan, const Rendezvous& rendezvous);

}  // namespace cohort
