#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tensor/flat_space.h"
#include "tensor/training_state.h"

// What single workers have, as files of a checkpoint: `worker-<rank>.safetensors`, which
// docs/checkpoints.md describes. The chief's has only what is in none of the files of all; another
// worker's also says how far it has come, and has its model, slots and buffers where its strategy
// keeps its own.

namespace cohort::training {

std::string worker_file_name(int rank);

/// How the tensors of a worker's state are called.
struct StateNames {
  tensor::ModelLayout layout;
  std::vector<std::string> slots;  ///< Of the optimizer.

  static StateNames of(Model& model, const Job& job);
};

/// Shows values of `state`, and copies none. The chief's: without what other files have.
checkpoint::CheckpointContent::File chiefs_worker_file(const tensor::TrainingState& state);
/// Another worker's: all that it has. Throws Error(invalid) where it is not of these names.
checkpoint::CheckpointContent::File worker_file(int rank, const tensor::TrainingState& state,
                                                const StateNames& names);

/// What was written. Throws Error naming the file where it is of another model or far too large;
/// sizes are looked at before values are read.
tensor::TrainingState read_worker_file(const checkpoint::Checkpoint& checkpoint, int rank,
                                       const StateNames& names);

}  // namespace cohort::training
