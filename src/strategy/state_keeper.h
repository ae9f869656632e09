#pragma once

#include <cstdint>

#include "tensor/training_state.h"

namespace cohort {

/// What a training has learned, between the steps: where it begins, what is saved of it, and what
/// goes along into the next group of workers. Every strategy keeps its own; who asks is whoever
/// makes groups and checkpoints, not the step.
class StateKeeper {
 public:
  virtual ~StateKeeper() = default;

  /// The step to go on with: StrategyContext::start's, the same on all workers.
  virtual std::int64_t first_step() const = 0;

  /// Everything, for a checkpoint. Between steps; needs no other worker's help, so one alone may
  /// call it. Where work is handed out, others may go on meanwhile.
  virtual void save_state(TrainingState& state) = 0;

  /// Every worker has something of its own that belongs into a checkpoint, beside what the chief
  /// saves.
  virtual bool saves_parts() const { return false; }

  /// Where saves_parts(): what this worker has for a checkpoint beside the one that saves
  /// everything. Between steps, needs nobody's help. In step all call it, or save_state(), after
  /// the same step (StepOutcome::save); elsewhere whenever they come to it. Goes on from it, with
  /// as many workers, as StrategyContext::start of the worker with the same rank.
  virtual void save_own_state(TrainingState& state) { save_state(state); }

  /// Whether every worker has something of its own to carry over, not only the chief of the next
  /// group.
  virtual bool all_carry() const = 0;

  /// What this worker takes along into the next group of workers, as StrategyContext::start there.
  /// Called at most once, last of all, between steps or after any call here has thrown, when no
  /// other worker of this group makes calls any more: a step that some had begun to apply is then
  /// wholly applied or wholly undone.
  virtual void carry_state(TrainingState& state) { save_state(state); }
};

}  // namespace cohort
