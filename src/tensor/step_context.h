#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace cohort {

/// What a layer may know of the step it runs in, beyond its input. It lets layers that look at the
/// whole batch (batch norm) or draw random numbers (dropout) give N workers the result one process
/// would get. Set by the stepper (train/loop/stepper.h) for the thread that runs forward and
/// backward.
struct StepContext {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t first_row = 0;  ///< Where this input's first sample stands in the global batch.

  /// Replaces numbers by their sum over all workers. Empty where there is one worker. Every worker
  /// calls it equally often, in forward and in backward, with the same sizes.
  std::function<void(std::span<double>)> sum_over_workers;

  /// Gradients are sent while the backward pass goes on: the sooner one is there the better.
  bool gradients_travel = false;
};

/// The context of the calling thread.
StepContext& step_context();

}  // namespace cohort
