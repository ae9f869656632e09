#pragma once

#include <cohort/job.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/loaded_data.h"
#include "launch/control/control_block.h"
#include "launch/seat.h"

namespace cohort {

/// What all tasks of a run have in common.
struct WorkerRun {
  const Job& job;
  const LoadedData& data;
  ControlBlock& control;
  std::filesystem::path run_dir;          ///< Empty on hosts that do not hold the run folder.
  std::filesystem::path start_from = {};  ///< A checkpoint; empty: the model as it is made.
  int cores = 1;  ///< That the local workers may use, counted before pinning.
  std::optional<double> part_work = {};  ///< See ThreadChoice.
  /// Of every server: memory of the launcher, which outlives it. Empty where servers are threads.
  std::vector<std::span<std::byte>> server_memories = {};
  std::vector<std::span<std::byte>> server_replicas = {};  ///< See ServerMemories.
};

/// The training of one worker, from its model to its result in the control block. Rank 0 of its
/// group is the chief: it writes the logs, the checkpoints and the final model. When a peer is lost
/// it goes on in the next group of its seat. When something else is thrown, `on_failure` is called
/// while it is being handled, before anything is torn down; it need not return.
void run_worker(const WorkerRun& run, Seat& seat, const std::function<void()>& on_failure);

/// Steps the whole job takes.
std::int64_t total_steps(const TrainOptions& train, std::int64_t samples);

/// The exception being handled as an error of ours: it may come from LibTorch, or from a program's
/// own model, dataset or loss.
Error current_error();

}  // namespace cohort
