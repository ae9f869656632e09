#pragma once

#include <cohort/model.h>

#include <span>
#include <vector>

#include "strategy/strategy.h"
#include "tensor/training_state.h"

// Tensors of a model that stand *apart*: that no strategy's memory has, because they are not
// trained and are no float buffers. These are frozen parameters, and counters of layers such as
// num_batches_tracked. They belong to the model all the same: a training that goes on must find
// them as they were, and all workers of a group must have the same.
//
// They travel in TrainingState::apart, by name: from group to group (save_apart, share_apart), and
// through checkpoints, where they stand among the other tensors of model.safetensors.

namespace cohort::training {

/// The values of a contiguous tensor of that type; they live as long as it.
template <class T>
std::span<const T> values_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<T>(), static_cast<std::size_t>(tensor.numel())};
}

/// Whether checkpoints have its type: 32-bit floats and 64-bit integers.
bool can_be_saved(const torch::Tensor& tensor);

/// Of types that can be saved, each under its first name (tied weights have several).
std::vector<NamedTensor> apart_tensors(Model& model);

/// Copies their values.
void save_apart(Model& model, tensor::TrainingState& state);

/// Gives all workers those of the chief, whose `start` counts where it has any. All call it
/// together, before their first step; those of a model without such tensors do nothing. Throws what
/// a strategy throws when a peer is lost.
void share_apart(Model& model, strategy::Strategy& strategy, const tensor::TrainingState* start,
                 bool is_chief);

}  // namespace cohort::training
