#pragma once

#include <cohort/job.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/load_data.h"
#include "launch/control/control_block.h"
#include "launch/seat.h"

namespace cohort::training {

/// What all tasks of a run have in common: made by the launcher before it forks, and not changed
/// any more. Of it only the control block, and the servers' memories, are shared by the processes;
/// the rest each has for itself.
struct WorkerRun {
  const Job& job;
  const data::LoadedData& data;
  launch::ControlBlock& control;
  std::filesystem::path run_dir;          ///< Empty on hosts that do not hold the run folder.
  std::filesystem::path start_from = {};  ///< A checkpoint; empty: the model as it is made.
  int cores = 1;  ///< That the local workers may use, counted before pinning.
  std::optional<double> part_work = {};  ///< See ThreadChoice.
  /// Of every server: memory of the launcher, which outlives it. Empty where lost tasks are not
  /// replaced one by one (can_regroup): servers are threads, or workers have other launchers.
  std::vector<std::span<std::byte>> server_memories = {};
  std::vector<std::span<std::byte>> server_replicas = {};  ///< See ServerMemories.
};

/// The training of one worker, from its model to its result in the control block. Rank 0 of its
/// group is the chief: it writes the logs, the checkpoints and the final model.
///
/// A worker goes from group to group until the training is over or no group has it any more. For
/// each of them:
///
///   1. carry    the chief to be, and where the strategy says so every worker, takes what it has
///               learned out of its last session; a chief that has nothing reads a checkpoint
///   2. join     all workers of the group come together: store and engine (launch/seat.h)
///   3. start    the chief says which checkpoint it goes on from, if any; the others read their
///               parts of it
///   4. session  model, strategy and stepper are made anew, from what was carried (train/session.h)
///   5. train    the loop, until all is done, a pause, or an exception
///
/// Until 4 is through the session of the group before is kept: should the chief be lost meanwhile,
/// another worker can still take over. What may be over with the group alone (a lost peer, a
/// timeout, too little memory for a group that is being formed) leads to the next one. When
/// something else is thrown, `on_failure` is called while it is being handled, before anything is
/// torn down; it need not return.
///
/// `run` and `seat` outlive the call. All of it is one thread's; the strategy, the batch loader and
/// the writers of checkpoints have threads of their own.
void run_worker(const WorkerRun& run, launch::Seat& seat, const std::function<void()>& on_failure);

/// Steps the whole job takes. Throws Error(invalid) where there are more than can be counted.
std::int64_t total_steps(const TrainOptions& train, std::int64_t samples);

/// The exception being handled as an error of ours: it may come from LibTorch, or from a program's
/// own model, dataset or loss.
Error current_error();

}  // namespace cohort::training
