#pragma once

#include <cohort/job.h>

#include <filesystem>
#include <functional>

#include "data/loaded_data.h"
#include "train/control_block.h"
#include "transport/engine.h"

namespace cohort {

/// What all workers of a run have in common.
struct WorkerRun {
  const Job& job;
  const LoadedData& data;
  ControlBlock& control;
  std::filesystem::path run_dir;  ///< Empty on hosts that do not hold the run folder.
  int cores = 1;                  ///< That the local workers may use, counted before pinning.
};

/// The training of one worker, from its model to its result in the control block. Rank 0 is the
/// chief: it writes the logs and the final model. The workers and servers of the run find each
/// other in `store`. When something is thrown, `on_failure` is called while it is being handled,
/// before anything is torn down; it need not return.
void run_worker(const WorkerRun& run, Engine& engine, Store& store,
                const std::function<void()>& on_failure);

/// Steps the whole job takes.
std::int64_t total_steps(const TrainOptions& train, std::int64_t samples);

}  // namespace cohort
