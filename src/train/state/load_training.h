#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tensor/training_state.h"

// A checkpoint as the state that a training goes on from: the way back from TrainingSnapshot. The
// files may be of another strategy, optimizer or number of workers, may come from anybody, and are
// not trusted: names, shapes and sizes are compared with the model before values are read.
//
//   written by                       what is gone on from
//   the same way, as many workers    everything; each worker has its own file again
//   the same way, more or fewer      what single workers had is dealt out anew (DealtState)
//   another strategy or compression  the model, and the optimizer's slots
//   another optimizer                as above, and the optimizer begins with nothing kept
//
// "The same way" is: the same strategy and compression.

namespace cohort::training {

/// What load_training() gives.
struct LoadedTraining {
  tensor::TrainingState state = {};
  std::vector<std::string> notes = {};  ///< A sentence for everything that is not as it was.
};

/// Where a worker stands among those that go on.
struct WorkerPlace {
  int rank = 0;
  int world = 0;  ///< 0: as many as wrote the checkpoint.
};

/// The state of a checkpoint for this model and job, whatever strategy, number of workers and
/// optimizer wrote it. Throws Error(invalid) naming the tensor where it is of another model.
LoadedTraining load_training(const checkpoint::Checkpoint& checkpoint, Model& model, const Job& job,
                             std::int64_t samples, const WorkerPlace& place = {});

/// How many workers wrote it.
int saved_workers(const checkpoint::Checkpoint& checkpoint);

/// What a worker other than the chief goes on from, beside that: its own state, or where there were
/// more or fewer workers what falls to it (DealtState). Nothing where the checkpoint has only the
/// chief's, or was written by another way of training.
std::optional<tensor::TrainingState> load_worker_part(const checkpoint::Checkpoint& checkpoint,
                                                      Model& model, const Job& job,
                                                      const WorkerPlace& place);

}  // namespace cohort::training
