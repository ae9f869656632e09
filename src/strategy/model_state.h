#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strategy/strategy.h"

namespace cohort::strategy {

/// A model with its optimizer between memory and TrainingState: how every strategy takes over what
/// it goes on from, and fills what is saved.

/// Where a model with its optimizer lives: what a TrainingState has copies of.
struct ModelMemory {
  std::span<float> parameters;
  std::vector<std::span<float>> slots;  ///< Each as large as the parameters.
  std::span<float> buffers;
};

/// How far a model has come; see TrainingState.
struct ModelAge {
  std::int64_t step = 0;     ///< Steps of the job that are in it.
  std::int64_t updates = 0;  ///< Of the optimizer whose slots it has.
};

/// Fills the memory with what this worker goes on from; where it has nothing, with the model as it
/// is and zero slots. Throws Error(invalid) where that is of another model or optimizer.
ModelAge load_start(const StrategyContext& context, const ModelMemory& memory);

/// Throws Error(invalid) where a state to go on from has `found` of what the model has `wanted`.
void check_size(const char* what, std::size_t found, std::size_t wanted);

/// Fills parameters, slots and buffers.
void save_model(const ModelMemory& memory, tensor::TrainingState& state);

/// What is left after whole steps, for a job that hands out work later.
cluster::WorkLeft work_after(std::int64_t step, std::int64_t parts);

/// What is left to hand out after `state`, a step's batch cut into `parts`. Pieces of steps that
/// are partly done count only where the cut is the same; with another one such steps are done
/// again.
cluster::WorkLeft work_left(const tensor::TrainingState& state, std::int64_t parts);

/// Updates of an optimizer with so many slots that goes on from `state`; none where that has no
/// slots for it.
std::int64_t updates_before(const tensor::TrainingState& state, std::size_t slots);

/// What is known of a model that stands in memory which outlives the groups of workers that train
/// it there, kept in the same memory: so a worker that is killed at any instruction while it takes
/// the model from one group to the next leaves it to others.
///
///   zeroed ─── holds ──begin(g)──▶ changed by g ──write()──▶ holds ──begin(g + 1)──▶ …
///
/// The record *holds* while nobody has begun to change the model since it was written. Whoever
/// begins says so first; when its group is over, one worker of it makes the model whole (the journal
/// of the group tells how far an update has come) and writes the record anew.
class ModelRecord {
 public:
  static std::size_t bytes_needed(std::size_t buffers);

  /// `memory` is 64-byte aligned and has bytes_needed(buffers); zeroed, it is a record that holds.
  ModelRecord(std::span<std::byte> memory, std::size_t buffers);

  /// Of workers of one group, any number may say that they change the model from now on.
  void begin(std::int64_t group);
  /// Whether that group was the last to begin, and nobody has written a record since.
  bool is_changed_by(std::int64_t group) const;
  bool holds() const;

  /// The model is whole, and this is how far it has come. One worker at a time.
  void write(const ModelAge& age, std::span<const float> buffers);
  /// Of a record that holds.
  ModelAge age() const;
  std::span<const float> buffers() const { return buffers_; }

 private:
  struct Header {
    std::atomic<std::int64_t> changed_by;  ///< Group + 1; 0: none yet.
    std::atomic<std::int64_t> written_of;  ///< The same, when the record was written.
    ModelAge age;
  };

  Header* header_;
  std::span<float> buffers_;
};

}  // namespace cohort::strategy
