#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cluster/membership.h"
#include "strategy/strategy.h"
#include "train/loop/step_log.h"
#include "train/loop/stepper.h"
#include "train/worker_life.h"

namespace cohort::training {

/// How one worker goes through the steps beside the others: who says which step is next, when it
/// stops, who validates, and whose loss a step's is. There are three ways (StrategyTraits says
/// which one a job has):
///
/// *in lockstep*   all make every step together, see the same outcome, and stop by a vote in it;
/// *alone*         each makes every step, on its part of the batch, and they meet now and then;
/// *handed out*    each makes the pieces of steps that it is given, until there are none.
///
/// For each step the loop calls next(), may_apply(), hand_in() and step_done(); when next() has
/// nothing more, meet(). For one thread.
class Pace {
 public:
  explicit Pace(bool stopped) : stopped_(stopped) {}
  virtual ~Pace() = default;

  /// Whether this worker has to stop.
  bool stopped() const { return stopped_; }

  /// The piece to make when `steps` steps are done; nothing where none is left or it has to stop.
  virtual std::optional<cluster::Claim> next(std::int64_t steps) = 0;

  /// Whether the strategy may have a step with this loss of the worker's. In lockstep always: the
  /// votes say of a loss that is not finite, before anybody has applied the step.
  virtual bool may_apply(double loss) const = 0;

  /// The piece that makes it `steps` steps is handed to the strategy now. Whether the next one may
  /// come with the answer, given whether the worker goes on at once (others may have to wait for
  /// whoever has a piece and does something else first).
  virtual bool hand_in(std::int64_t steps, bool goes_on_at_once) = 0;

  /// The step was applied. Makes the outcome's loss the mean over the rows that it is of.
  virtual void step_done(const StepWork& work, strategy::StepOutcome& outcome) = 0;

  /// What this worker looks at of the validation set between two steps.
  virtual std::optional<ValidationPart> validates() const = 0;

  /// In a later group: whether the last epoch is validated, of which this worker knows `own`. A
  /// newcomer does not know it, and of those who were there when a group broke some may have come
  /// through the validation and others not; but all have to do the same.
  virtual bool agree_on_validated(bool own) = 0;

  /// After the last step, all together: makes the workers' model one. The steps that are done, or
  /// nothing where somebody was stopped before all was done.
  virtual std::optional<std::int64_t> meet(std::int64_t steps) = 0;

  /// This worker has a loss that is not finite and fails when this returns. Where all fail in the
  /// same step, nobody does before the chief has saved, or it might be ended with the others too
  /// early.
  virtual void before_failure() = 0;

 protected:
  bool stopped_;
};

/// What a pace is made of; all of it outlives it.
struct PaceContext {
  WorkerLife& life;
  const cluster::View& view;
  strategy::Strategy& strategy;
  StepLog& log;
};

/// The one the job's strategy has.
std::unique_ptr<Pace> make_pace(const PaceContext& context);

}  // namespace cohort::training
