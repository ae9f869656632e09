#pragma once

#include <cohort/model.h>

#include <vector>

#include "strategy/strategy.h"
#include "tensor/training_state.h"

namespace cohort {

/// Tensors of a model that a strategy's memory does not have: frozen parameters, and counters of
/// layers such as num_batches_tracked. They belong to the model all the same: a training that goes
/// on must find them as they were.

/// Of types that can be saved, each under its first name.
std::vector<NamedTensor> apart_tensors(Model& model);

/// Copies their values.
void save_apart(Model& model, TrainingState& state);

/// Gives all workers those of the chief, whose `start` counts where it has any. All call it
/// together, before their first step; those of a model without such tensors do nothing.
void share_apart(Model& model, Strategy& strategy, const TrainingState* start, bool is_chief);

}  // namespace cohort
