#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tensor/flat_space.h"
#include "tensor/training_state.h"

namespace cohort {

/// What a checkpoint says of the run that wrote it, and neither job nor training state knows.
struct CheckpointPlace {
  std::int64_t samples = 0;  ///< Of the training set.
  int workers = 1;           ///< That took part.
};

/// A training at one moment, in the form checkpoints are made of. It keeps what it needs of the
/// model, so that training may go on, or the model may go, while it is being written.
class TrainingSnapshot {
 public:
  /// To be filled by a strategy, then completed by describe(). Its memory is used again.
  TrainingState& state() { return state_; }

  /// Takes from the model what its training state does not have: names, shapes, what is not
  /// trained. Throws Error(invalid) where the state is not one of this model and optimizer.
  void describe(Model& model, const Job& job, const CheckpointPlace& place);

  /// docs/checkpoints.md describes the files. Shows values of this snapshot, and copies none.
  CheckpointContent content() const;

 private:
  /// A tensor under one of its names (tied weights have several).
  struct NamedPlace {
    std::string name;
    std::vector<std::int64_t> shape;
    enum class In { parameters, buffers, none } in = In::none;
    std::size_t offset = 0;  ///< There, in floats.
    std::size_t count = 0;
    torch::Tensor apart = {};  ///< What stands in neither: frozen parameters, counters.
  };

  void describe_tensors(Model& model, const ModelLayout& layout);
  void check_sizes(const ModelLayout& layout, std::size_t slots) const;
  TensorView view_of(const NamedPlace& tensor) const;
  CheckpointContent::File model_file() const;
  CheckpointContent::File optimizer_file() const;

  TrainingState state_;
  std::vector<NamedPlace> tensors_;
  std::vector<FlatEntry> trained_;
  std::vector<std::string> slots_;
  std::string text_;
};

struct LoadedTraining {
  TrainingState state = {};
  std::vector<std::string> notes = {};  ///< A sentence for everything that is not as it was.
};

/// Where a worker stands among those that go on.
struct WorkerPlace {
  int rank = 0;
  int world = 0;  ///< 0: as many as wrote the checkpoint.
};

/// The state of a checkpoint for this model and job, whatever strategy, number of workers and
/// optimizer wrote it. Throws Error(invalid) naming the tensor where it is of another model.
LoadedTraining load_training(const Checkpoint& checkpoint, Model& model, const Job& job,
                             std::int64_t samples, const WorkerPlace& place = {});

/// How many workers wrote it.
int saved_workers(const Checkpoint& checkpoint);

/// What a worker other than the chief goes on from, beside that: its own state, or where there were
/// more or fewer workers what falls to it (DealtState). Nothing where the checkpoint has only the
/// chief's, or was written by another way of training.
std::optional<TrainingState> load_worker_part(const Checkpoint& checkpoint, Model& model,
                                              const Job& job, const WorkerPlace& place);

}  // namespace cohort
