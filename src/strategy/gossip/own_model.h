#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "os/private_memory.h"
#include "strategy/model_state.h"
#include "strategy/strategy.h"
#include "strategy/worker_sums.h"

namespace cohort {

/// A model of which this worker has everything for itself: parameters, gradients, optimizer slots
/// and buffers. At first it is what the worker brings along, or where it has nothing worker 0's.
class OwnModel {
 public:
  /// All workers make theirs together.
  OwnModel(const StrategyContext& context, WorkerSums& sums);

  FlatSpace& space() { return *space_; }
  std::span<float> parameters() const { return memory_.parameters; }
  std::span<float> gradients() const { return space_->memory().gradients; }
  std::span<float> buffers() const { return memory_.buffers; }
  std::span<float> slot(std::size_t number) const { return memory_.slots[number]; }

  /// From now on updates are made by this rule. It has no slots; those there are stay the caller's.
  void use(std::unique_ptr<Optimizer> rule) { rule_ = std::move(rule); }

  /// A step of the optimizer, or that share of one, by gradients() times `gradient_scale`.
  void update(double lr, double gradient_scale, double share);

  /// The model, its slots and the number of updates.
  void save(TrainingState& state) const;

  /// What updates change, as it is now, and as it then was again.
  struct Past {
    std::vector<float> floats;  ///< Parameters, then each slot.
    std::int64_t updates = 0;
  };
  Past past() const;
  void go_back(const Past& past);

 private:
  const Optimizer& optimizer_;
  std::unique_ptr<Optimizer> rule_;  // In its place, where there is one.
  PrivateMemory floats_;             // Parameters, buffers, gradients, slots.
  ModelMemory memory_;
  std::optional<FlatSpace> space_;
  std::int64_t updates_ = 0;
};

}  // namespace cohort
