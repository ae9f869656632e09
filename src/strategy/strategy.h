#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/phases.h"
#include "tensor/flat_space.h"
#include "tensor/optimizer.h"
#include "transport/engine.h"

namespace cohort {

/// What one worker brings to a step, known once its last forward pass is done.
struct Vote {
  double loss = 0;    ///< This worker's share of the global batch's mean loss.
  bool stop = false;  ///< This worker was asked to stop after this step.
};

/// How to apply a step's gradients.
struct UpdatePlan {
  double lr = 0;
  std::int64_t step = 0;   ///< The first is 0.
  double clip_norm = 0;    ///< 0: no clipping.
  bool want_norm = false;  ///< Whether StepOutcome::gradient_norm is looked at.
};

/// What all workers together made of a step; the same everywhere.
struct StepOutcome {
  double loss = 0;  ///< The mean over the global batch.
  bool stop = false;
  int diverged_rank = -1;  ///< A rank whose loss was not finite: the step was not applied.
  double gradient_norm = 0;
};

struct Traffic {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// How workers make one model out of what each has learned. One object per worker; it owns the
/// memory the model lives in. The loop calls, for every step:
///
///   space().begin_step(), forward, backward …, begin_last_backward(vote), backward, finish_step()
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// One line for the user: what was picked and why.
  virtual std::string describe() const = 0;

  /// The model, moved to the strategy's memory, with equal values on all workers.
  virtual FlatSpace& space() = 0;

  virtual void begin_last_backward(const Vote& vote) = 0;

  /// Combines the workers' gradients and updates the parameters.
  virtual StepOutcome finish_step(const UpdatePlan& plan) = 0;

  /// Replaces floats by their sum over all workers: for layers and validation, not for gradients.
  virtual void sum_over_workers(std::span<float> values) = 0;

  virtual Traffic traffic() const = 0;

  /// Tells the others that this worker is done or has failed. Does not throw.
  virtual void close() noexcept = 0;
};

/// What a strategy is made of.
struct StrategyContext {
  Model& model;
  Engine& engine;
  const Optimizer& optimizer;
  PhaseClock& phases;
  StrategyOptions options;
  Duration timeout;  ///< For any one wait for a peer.
  int cores = 1;     ///< That the local ranks may use, counted before pinning.
};

/// The strategy `context.options.kind` names. All workers call it together.
std::unique_ptr<Strategy> make_strategy(const StrategyContext& context);

/// The kinds make_strategy knows.
const std::vector<std::string>& strategy_kinds();

}  // namespace cohort
