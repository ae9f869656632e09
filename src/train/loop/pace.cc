#include "train/loop/pace.h"

#include <cmath>
#include <utility>

#include "kinds/strategy_table.h"

namespace cohort::training {
namespace {

/// All make every step together. A stop is a vote in the step, so that nobody has to ask.
class LockstepPace : public Pace {
 public:
  explicit LockstepPace(const PaceContext& context)
      : Pace(context.view.closing), context_(context) {}

  std::optional<cluster::Claim> next(std::int64_t steps) override {
    if (stopped_ || steps >= context_.life.total_steps) return std::nullopt;
    return cluster::Claim{.step = steps};
  }

  bool may_apply(double /*loss*/) const override { return true; }
  bool hand_in(std::int64_t /*steps*/, bool /*goes_on_at_once*/) override { return false; }
  void step_done(const StepWork& /*work*/, strategy::StepOutcome& outcome) override {
    stopped_ = outcome.stop;
  }

  std::optional<ValidationPart> validates() const override { return ValidationPart::own_share; }
  bool agree_on_validated(bool own) override {
    return context_.strategy.any_worker(own && context_.life.own_steps > 0);
  }

  std::optional<std::int64_t> meet(std::int64_t steps) override {
    context_.strategy.meet();
    if (stopped_ && steps < context_.life.total_steps) return std::nullopt;
    return steps;
  }

  void before_failure() override { context_.strategy.wait_for_workers(); }

 private:
  PaceContext context_;
};

/// What workers have in common that do not wait for each other in a step.
class LoosePace : public Pace {
 public:
  explicit LoosePace(const PaceContext& context) : Pace(context.view.closing), context_(context) {}

  bool may_apply(double loss) const override { return std::isfinite(loss); }
  void step_done(const StepWork& work, strategy::StepOutcome& outcome) override {
    stopped_ = outcome.stop;
    if (work.rows == 0) return;
    outcome.loss *= static_cast<double>(work.global_rows) / static_cast<double>(work.rows);
  }

  /// The others train on meanwhile, so the chief looks at all of the set alone.
  std::optional<ValidationPart> validates() const override {
    if (context_.view.rank_of(context_.life.worker) != 0) return std::nullopt;
    return ValidationPart::whole_set;
  }
  bool agree_on_validated(bool own) override { return own || context_.life.own_steps == 0; }

  /// They may differ in whether they were stopped or had done all.
  std::optional<std::int64_t> meet(std::int64_t /*steps*/) override {
    {
      std::optional<Timeout::Longer> longer;
      const bool chief_may_validate = context_.life.run.job.train.validate == "epoch";
      if (chief_may_validate) longer.emplace(context_.life.timeout, kLongestWork);
      context_.strategy.meet();
    }
    if (context_.strategy.any_worker(stopped_)) return std::nullopt;
    return context_.life.total_steps;
  }

  /// It has not passed its loss on, so it fails alone.
  void before_failure() override {}

 protected:
  PaceContext context_;
};

/// Each makes every step, on its part of the batch.
class AlonePace : public LoosePace {
 public:
  using LoosePace::LoosePace;

  /// A stop is agreed upon without asking: see ControlBlock::may_head_for.
  std::optional<cluster::Claim> next(std::int64_t steps) override {
    WorkerLife& life = context_.life;
    if (stopped_ || steps >= life.total_steps) return std::nullopt;
    stopped_ = !life.run.control.may_head_for(life.card, steps + 1);
    if (stopped_) return std::nullopt;
    return cluster::Claim{.step = steps};
  }

  bool hand_in(std::int64_t /*steps*/, bool /*goes_on_at_once*/) override { return false; }
};

/// Each makes the pieces it is given: the next comes with the answer to the last, or is asked for.
class HandedOutPace : public LoosePace {
 public:
  using LoosePace::LoosePace;

  std::optional<cluster::Claim> next(std::int64_t /*steps*/) override {
    if (stopped_) return std::nullopt;
    std::optional<cluster::Claim> claim = std::exchange(next_, std::nullopt);
    if (!claim) {
      context_.log.ask_for_work();
      claim = context_.strategy.work()->next_work();
    }
    if (claim) context_.log.begin_piece(claim->step + 1);
    return claim;
  }

  bool hand_in(std::int64_t steps, bool goes_on_at_once) override {
    if (goes_on_at_once) context_.log.hand_in(steps);
    return goes_on_at_once;
  }

  void step_done(const StepWork& work, strategy::StepOutcome& outcome) override {
    LoosePace::step_done(work, outcome);
    next_ = outcome.next;
  }

 private:
  std::optional<cluster::Claim> next_;  // The next piece, where it has come.
};

}  // namespace

std::unique_ptr<Pace> make_pace(const PaceContext& context) {
  const kinds::StrategyTraits traits = kinds::way_of(context.life.run.job.strategy).traits;
  if (traits.lockstep) return std::make_unique<LockstepPace>(context);
  if (traits.hands_out_work) return std::make_unique<HandedOutPace>(context);
  return std::make_unique<AlonePace>(context);
}

}  // namespace cohort::training
