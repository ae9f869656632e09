#pragma once

#include <cstdint>

#include "cluster/work_board.h"
#include "train/loop/validation.h"

namespace cohort::training {

/// One step to make.
struct StepOrder {
  cluster::Claim piece;  ///< The step; where steps are handed out, also which part of its batch.
  bool stop = false;     ///< This worker was asked to stop after it: its Vote::stop.
  bool save = false;     ///< It wants a checkpoint of it by all: its Vote::save.
};

/// What this worker has done for a step. Over all workers of a step, rows add up to `global_rows`
/// and losses to the mean loss of the global batch.
struct StepWork {
  double loss = 0;  ///< Its Vote::loss.
  std::int64_t rows = 0;
  std::int64_t global_rows = 0;
};

/// What happens in a step, up to the update: where batches come from, forward, loss, backward. One
/// object per worker and group; its calls come from one thread. The loop (training_loop.h) knows no
/// more of a model's passes than this, and a Strategy no more than the gradients that are left in
/// its space. For each step the loop calls compute() and then Strategy::finish_step; evaluate()
/// only between two steps.
///
/// Today there is one, ReplicaStepper: every worker has the whole model. How others would fit:
///
/// *A pipeline.* The model a worker has is one stage of it. compute() runs the micro-batches of the
/// step forward and backward in the order of its schedule, exchanging activations and their
/// gradients with the stages beside it over a group of ranks of its own; it calls
/// begin_last_backward() of its strategy before the last backward pass of its stage. Only the last
/// stage has a loss, and only the first counts rows: the others give 0, so the sums above hold. The
/// strategy sums gradients over the workers of the same stage, and votes over all. evaluate() sends
/// the chunks of the set through the stages; the last one returns sums and the others zeros, which
/// the loop adds up over the workers as it does anyway.
///
/// *Tensor parts.* The workers of one tensor group take the same rows, and their layers sum or
/// gather over that group in forward and backward (StepContext has what they need to know). One of
/// the group gives loss and rows, the others 0; likewise in evaluate(). The strategy sums gradients
/// over the workers that have the same part.
///
/// *A program's own loop* needs no Stepper: it makes the passes and calls the strategy itself, as
/// compute() and the loop do.
class Stepper {
 public:
  virtual ~Stepper() = default;

  /// Makes all passes of one step and leaves the gradients in the strategy's space; has called its
  /// begin_last_backward() once. Where steps are not handed out they come in order, each once.
  /// Throws what a peer's loss, the data, the model or the loss function throws; the step is then
  /// not applied, and this object is not used any more.
  virtual StepWork compute(const StepOrder& order) = 0;

  /// Looks at the validation set without learning from it. With ValidationPart::own_share all
  /// workers call it together, with ValidationPart::whole_set one may call it alone.
  virtual ValidationSums evaluate(ValidationPart part) = 0;
};

}  // namespace cohort::training
