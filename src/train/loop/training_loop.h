#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cluster/membership.h"
#include "strategy/strategy.h"
#include "train/loop/chief_duty.h"
#include "train/loop/pace.h"
#include "train/loop/step_log.h"
#include "train/loop/stepper.h"
#include "train/loop/validation.h"
#include "train/state/session_checkpoints.h"
#include "train/worker_life.h"

namespace cohort::training {

/// What the loop is given; all of it outlives it.
struct LoopContext {
  WorkerLife& life;
  const cluster::View& view;
  std::string engine;  ///< Its name, for the worker's result.
  Model& model;        ///< Only to be saved.
  strategy::Strategy& strategy;
  Stepper& stepper;
};

/// One worker's way through the steps within one group of workers: epochs, validations, logs,
/// checkpoints, stops. What happens in a step is the Stepper's, how the workers' steps become one
/// model is the Strategy's, and how they go beside each other is the Pace's.
///
/// The order of a step, from one to the next:
///
///   a task of the group was lost?       throws peer_lost, where a loss stops all
///   EpochValidation::before_step        the epoch that is over, if one is
///   Pace::next                          which step, or which piece of one; nothing: meet, below
///   Stepper::compute                    batch, forward, backward; this worker's vote goes along
///                                       (its loss, whether it was asked to stop, wants a
///                                       checkpoint)
///   Pace::may_apply                     a loss that is not finite goes no further
///   Strategy::finish_step               gradients become an update; the outcome is the same for
///                                       all that made the step together
///   Pace::step_done, StepBooks, StepLog counts, card, log
///   SessionCheckpoints::after_step      copies what is to be saved
///
/// When there is no next step: Pace::meet makes the workers' models one. Where all steps are done,
/// the end follows: validation, model, last checkpoint, and all wait until the chief has saved.
/// Where somebody was stopped before, it is a pause; if the run is to end there, all is saved
/// first.
///
/// Steps count from 0 while they are made (`step`), and are `steps` done afterwards. When one of
/// the parts throws the loop is over, and has left the step it was in to the strategy, which knows
/// whether it is applied. For the worker's thread.
class TrainingLoop {
 public:
  /// Goes on with the strategy's first step. All workers of the group make theirs together.
  explicit TrainingLoop(const LoopContext& context);
  TrainingLoop(const TrainingLoop&) = delete;
  TrainingLoop& operator=(const TrainingLoop&) = delete;

  enum class End { finished, paused };

  /// Trains until all is done or somebody wants a pause. Throws Error(diverged) where a loss is not
  /// finite; that step is not applied by anybody.
  End run();

  /// Within a step, those before it.
  std::int64_t steps_done() const { return step_; }

 private:
  /// Makes step_ the number of the step to make next, which is that of those before it.
  std::optional<cluster::Claim> next_piece();
  void make_step(const cluster::Claim& piece);
  strategy::UpdatePlan plan_of_update(bool stops);
  void after_step(const cluster::Claim& piece, const StepWork& work,
                  const strategy::StepOutcome& outcome);
  [[noreturn]] void stop_diverged(const std::string& what, int rank);
  bool run_ends() const;
  void save_before_end();
  void finish();
  void log_last_step();

  LoopContext context_;
  WorkerLife& life_;
  const Job& job_;
  bool loss_stops_all_;  // Of the job's strategy.
  std::int64_t step_;    // Steps done; within a step, its number.
  ChiefDuty duty_;
  SessionCheckpoints checkpoints_;
  StepBooks books_;
  StepLog log_;
  std::unique_ptr<Pace> pace_;
  EpochValidation validation_;
  std::optional<double> last_loss_;  // Of the last step this worker made in this group.
};

}  // namespace cohort::training
