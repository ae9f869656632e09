#include "strategy/allreduce_buckets.h"

#include <fmt/format.h>

#include "base/failpoint.h"
#include "collective/bucket_reducer.h"
#include "strategy/lockstep_model.h"

namespace cohort {
namespace {

class AllreduceBuckets : public Strategy {
 public:
  explicit AllreduceBuckets(const StrategyContext& context)
      : context_(context),
        transport_(context.engine.connect(context.timeout.deadline())),
        model_(context),
        first_step_(model_.step()),
        reducer_(*transport_, model_.travelling(), model_.buckets(context.options.bucket_bytes),
                 {.algorithm = context.options.algorithm,
                  .hosts = context.engine.hosts(),
                  .timeout = context.timeout.usual(),
                  .background = context.engine.sends_in_background(),
                  .phases = &context.phases,
                  .activity = context.activity}) {
    model_.space().on_gradient_ready(
        [this](std::size_t parameter) { reducer_.parameter_ready(parameter); });
  }

  ~AllreduceBuckets() override { AllreduceBuckets::close(); }

  std::string describe() const override {
    return fmt::format("all-reduce by messages: {} over {}, {} workers, {} bucket{}{}",
                       context_.options.algorithm, context_.engine.name(), context_.engine.world(),
                       reducer_.buckets().segments.size(),
                       reducer_.buckets().segments.size() == 1 ? "" : "s",
                       context_.engine.sends_in_background() ? " during the backward pass" : "");
  }

  Pace pace() const override {
    Pace pace = pace_of(context_.options);
    pace.gradients_travel = context_.engine.sends_in_background();
    return pace;
  }

  FlatSpace& space() override { return model_.space(); }

  void begin_last_backward(const Vote& vote) override {
    reducer_.begin_step();
    model_.put_vote(vote);
    model_.space().begin_last_backward();
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    model_.space().finish_step();
    failpoint("allreduce.before-gradients");
    PhaseSpan span(context_.phases, Phase::communication);
    reducer_.wait();
    span.next(Phase::optimizer);
    StepOutcome outcome = model_.count_votes();
    if (outcome.diverged_rank < 0) model_.update(context_.optimizer, plan, outcome);
    failpoint("allreduce.after-update");
    return outcome;
  }

  void sum_over_workers(Numbers numbers) override { model_.sums().sum(numbers); }

  Traffic traffic() const override {
    const Traffic side = model_.sums().traffic();
    return {transport_->bytes_sent() + side.sent, transport_->bytes_received() + side.received};
  }

  std::int64_t first_step() const override { return first_step_; }
  void save_state(TrainingState& state) override { model_.save(state); }

  // Buckets that are under way on the reducer's thread end with that.
  void close() noexcept override {
    transport_->close();
    model_.sums().close();
  }

 private:
  StrategyContext context_;
  std::unique_ptr<Transport> transport_;
  LockstepModel model_;  // Its layers sum over workers while buckets are under way.
  std::int64_t first_step_;
  BucketReducer reducer_;
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce_buckets(const StrategyContext& context) {
  return std::make_unique<AllreduceBuckets>(context);
}

}  // namespace cohort
