#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/strategy.h"

namespace cohort {

/// Where a model with its optimizer lives: what a TrainingState has copies of.
struct ModelMemory {
  std::span<float> parameters;
  std::vector<std::span<float>> slots;
  std::span<float> buffers;
};

/// How far a model has come; see TrainingState.
struct ModelAge {
  std::int64_t step = 0;
  std::int64_t updates = 0;
};

/// Fills the memory with what this worker goes on from; where it has nothing, with the model as it
/// is and zero slots. Throws Error(invalid) where that is of another model or optimizer.
ModelAge load_start(const StrategyContext& context, const ModelMemory& memory);

/// Fills parameters, slots and buffers.
void save_model(const ModelMemory& memory, TrainingState& state);

/// What is left after whole steps, for a job that hands out work later.
WorkLeft work_after(std::int64_t step, std::int64_t parts);

}  // namespace cohort
