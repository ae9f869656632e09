#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

namespace cohort::tensor {

/// What a layer may know of the step it runs in, beyond its input. It lets layers that look at the
/// whole batch (batch norm) or draw random numbers (dropout) give N workers the result one process
/// would get, and tells linear layers whether their gradients are waited for.
///
/// A layer's forward() has no argument for this: a model may be a program's own torch module, whose
/// signature is not ours to change. So the context is one of the calling thread:
///
///   set     by a StepScope of the stepper (ReplicaStepper::compute), for a forward and a backward
///           pass
///   read    by batch norm, dropout and linear layers (model/functions/), in forward; by batch norm
///           in backward too, which torch runs on the thread that called backward()
///   owned   by the thread. The function in it is the stepper's, and leads to the strategy
///           (Strategy::sum_over_workers); the scope takes it back before either can end
///   none    a thread nobody told anything has the default: one worker, its rows from 0 on, step 0
///
/// Threads share nothing: replicas that run as threads of one process each have their own.
struct StepContext {
  std::uint64_t seed = 0;      ///< Of the job.
  std::int64_t step = 0;       ///< From 0, over all epochs.
  std::int64_t first_row = 0;  ///< Where this input's first sample stands in the global batch.

  /// Replaces numbers by their sum over all workers; waits for them, and throws where one is lost.
  /// Empty where there is one worker, or where workers do not go in step. Every worker calls it
  /// equally often, in forward and in backward, with the same sizes.
  std::function<void(std::span<double>)> sum_over_workers;

  /// Gradients are sent while the backward pass goes on: the sooner one is there the better.
  bool gradients_travel = false;
};

/// The context of the calling thread.
inline StepContext& step_context() {
  thread_local StepContext context;
  return context;
}

/// Gives the calling thread a context from construction to destruction, and the one before it back:
/// the way to have a context that cannot outlive what it refers to. Ends on the thread it began on.
class StepScope {
 public:
  explicit StepScope(StepContext context)
      : before_(std::exchange(step_context(), std::move(context))) {}
  ~StepScope() { step_context() = std::move(before_); }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  StepContext before_;
};

}  // namespace cohort::tensor
