#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cluster/view.h"
#include "strategy/strategy.h"
#include "train/loop/chief_duty.h"
#include "train/loop/epoch_validation.h"
#include "train/loop/pace.h"
#include "train/loop/step_books.h"
#include "train/loop/step_log.h"
#include "train/loop/stepper.h"
#include "train/state/session_checkpoints.h"
#include "train/worker_life.h"

namespace cohort {

/// What the loop is given; all of it outlives it.
struct LoopParts {
  WorkerLife& life;
  const View& view;
  std::string engine;  ///< Its name, for the worker's result.
  Model& model;        ///< Only to be saved.
  Strategy& strategy;
  Stepper& stepper;
};

/// One worker's way through the steps within one group of workers: epochs, validations, logs,
/// checkpoints, stops. What happens in a step is the Stepper's, how the workers' steps become one
/// model is the Strategy's, and how they go beside each other is the Pace's. When one of them
/// throws the loop is over, and has left the step it was in to the strategy, which knows whether it
/// is applied.
class TrainingLoop {
 public:
  /// Goes on with the strategy's first step. All workers of the group make theirs together.
  explicit TrainingLoop(const LoopParts& parts);
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
  std::optional<Claim> next_piece();
  void make_step(const Claim& piece);
  UpdatePlan plan_of_update(bool stops);
  void after_step(const Claim& piece, const StepWork& work, const StepOutcome& outcome);
  [[noreturn]] void stop_diverged(int rank);
  bool run_ends() const;
  void save_before_end();
  void finish();
  void log_last_step();

  LoopParts parts_;
  WorkerLife& life_;
  const Job& job_;
  bool loss_stops_all_;
  std::int64_t step_;
  ChiefDuty duty_;
  SessionCheckpoints checkpoints_;
  StepBooks books_;
  StepLog log_;
  std::unique_ptr<Pace> pace_;
  EpochValidation validation_;
  std::optional<double> last_loss_;
};

}  // namespace cohort
