#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tensor/flat_space.h"
#include "tensor/training_state.h"

namespace cohort::training {

/// The files of a checkpoint that all workers have in common; docs/checkpoints.md describes them.
/// Beside them stand state.json (checkpoint_text.h) and the files of single workers
/// (worker_file.h).
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

/// What a slot's part for one parameter is called in the second.
inline std::string slot_tensor(const std::string& slot, const std::string& parameter) {
  return slot + "/" + parameter;
}

/// All parameters, then all buffers, under all of their names.
std::vector<NamedTensor> all_tensors(Model& model);

/// What a checkpoint says of the run that wrote it, and neither job nor training state knows.
struct CheckpointPlace {
  std::int64_t samples = 0;  ///< Of the training set.
  int workers = 1;           ///< That took part.
};

/// A training at one moment, in the form checkpoints are made of: load_training() is the way back.
/// It keeps what it needs of the model, so that training may go on, or the model may go, while it
/// is being written. In this order, again and again with the same object:
///
///   state()     a strategy copies parameters, slots and buffers into it    training stands still
///   describe()  names, shapes, what is not trained, state.json             training stands still
///   content()   shows all of it as files; another thread may write them    training goes on
///
/// For one thread at a time.
class TrainingSnapshot {
 public:
  /// To be filled by a strategy, then completed by describe(). Its memory is used again.
  tensor::TrainingState& state() { return state_; }

  /// Takes from the model what its training state does not have: names, shapes, what is not
  /// trained. Throws Error(invalid) where the state is not one of this model and optimizer.
  void describe(Model& model, const Job& job, const CheckpointPlace& place);

  /// docs/checkpoints.md describes the files. Shows values of this snapshot, and copies none.
  checkpoint::CheckpointContent content() const;

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

  void describe_tensors(Model& model, const tensor::ModelLayout& layout);
  void check_sizes(const tensor::ModelLayout& layout, std::size_t slots) const;
  checkpoint::TensorView view_of(const NamedPlace& tensor) const;
  checkpoint::CheckpointContent::File model_file() const;
  checkpoint::CheckpointContent::File optimizer_file() const;

  tensor::TrainingState state_;
  std::vector<NamedPlace> tensors_;
  std::vector<tensor::FlatEntry> trained_;
  std::vector<std::string> slots_;
  std::string text_;
};

}  // namespace cohort::training
