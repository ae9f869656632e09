#include <fmt/format.h>

#include <algorithm>

#include "base/failpoint.h"
#include "collective/bucket_reducer.h"
#include "strategy/allreduce/factor_exchange.h"
#include "strategy/allreduce/lockstep_model.h"
#include "strategy/make_strategy.h"

namespace cohort::strategy {
namespace {

/// Synchronous data parallelism by messages: every rank has the whole model, the gradients are
/// all-reduced in *buckets* by a schedule (ring, direct, tree), and every rank makes the same
/// update.
///
///   begin_last_backward()   the vote goes into the tail, which travels with bucket 0
///   backward pass           each gradient that is complete is told to the reducer; where the
///                           network does the sending, complete buckets travel meanwhile
///   finish_step()           waits for all buckets and counts the votes; updates, unless a rank
///                           has diverged
///
/// Weights of linear layers may travel *as factors* (FactorExchange): such a one has a bucket of
/// its own, whose exchange takes the place of the all-reduce, and is multiplied out here while
/// other buckets are still on their way.
///
/// A death ends a wait with an error, and the model is as it was after the last step: the update is
/// made only when all sums are there. No worker has anything of its own to carry over.
class AllreduceBuckets : public Strategy {
 public:
  explicit AllreduceBuckets(const StrategyContext& context)
      : context_(context),
        transport_(context.engine.connect(context.timeout.deadline())),
        model_(context),
        first_step_(model_.step()),
        as_factors_(FactorExchange::choose(model_.space(), context, model_.sums())),
        factors_(model_.space(), *transport_,
                 {.parameters = as_factors_, .samples = context.samples * context.engine.world()}),
        reducer_(*transport_, model_.travelling(),
                 model_.buckets(context.options.bucket_bytes, as_factors_), reducer_options()) {
    model_.space().on_gradient_ready(
        [this](std::size_t parameter) { reducer_.parameter_ready(parameter); });
    model_.space().let_gradients_travel(context.engine.sends_in_background());
  }

  ~AllreduceBuckets() override { AllreduceBuckets::close(); }

  StrategyReport report() const override {
    return {words(), transport_->traffic() + model_.sums().traffic()};
  }

  tensor::FlatSpace& space() override { return model_.space(); }

  void begin_last_backward(const Vote& vote) override {
    reducer_.begin_step();
    model_.put_vote(vote);
    model_.space().begin_last_backward();
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    model_.space().finish_step();
    failpoint("allreduce.before-gradients");
    PhaseSpan span(context_.phases, Phase::communication);
    multiply_factors(span);
    reducer_.wait();
    span.next(Phase::optimizer);
    StepOutcome outcome = model_.count_votes();
    if (outcome.diverged_rank < 0) model_.update(context_.optimizer, plan, outcome);
    failpoint("allreduce.after-update");
    return outcome;
  }

  void sum_over_workers(collective::Numbers numbers) override { model_.sums().sum(numbers); }

  std::int64_t first_step() const override { return first_step_; }
  bool all_carry() const override { return false; }
  void save_state(tensor::TrainingState& state) override { model_.save(state); }

  // Buckets that are under way on the reducer's thread end with that.
  void close() noexcept override {
    transport_->close();
    model_.sums().close();
  }

 private:
  std::string words() const {
    const auto factors = std::ranges::count(as_factors_, true);
    return fmt::format("all-reduce by messages: {} over {}, {} workers, {} bucket{}{}{}",
                       context_.options.algorithm, context_.engine.name(), context_.engine.world(),
                       reducer_.buckets().segments.size(),
                       reducer_.buckets().segments.size() == 1 ? "" : "s",
                       context_.engine.sends_in_background() ? " during the backward pass" : "",
                       factors == 0 ? "" : fmt::format(", {} of them factors", factors));
  }

  collective::BucketReducer::Options reducer_options() {
    collective::BucketReducer::Options options = plain_bucket_options(context_);
    options.exchange_apart = [this](std::size_t bucket, Deadline deadline) {
      // Buckets have their numbers as tags; FactorExchange uses three more each.
      constexpr transport::Tag kFactors = transport::Tag{1} << 32, kTagsEach = 4;
      factors_.exchange(reducer_.buckets().apart[bucket].value(), kFactors + kTagsEach * bucket,
                        deadline);
    };
    return options;
  }

  /// Each as soon as it is here, while others are still on their way.
  void multiply_factors(PhaseSpan& span) {
    const auto& apart = reducer_.buckets().apart;
    for (std::size_t bucket = 0; bucket < apart.size(); ++bucket) {
      if (!apart[bucket]) continue;
      reducer_.wait_for_first(bucket + 1);
      span.next(Phase::backward);
      factors_.multiply(*apart[bucket]);
      span.next(Phase::communication);
    }
  }

  StrategyContext context_;
  std::unique_ptr<transport::Transport> transport_;
  LockstepModel model_;  // Its layers sum over workers while buckets are under way.
  std::int64_t first_step_;
  std::vector<bool> as_factors_;  // By parameter.
  FactorExchange factors_;        // Used on the reducer's thread, too.
  collective::BucketReducer reducer_;
};

}  // namespace

std::unique_ptr<Strategy> make_allreduce_buckets(const StrategyContext& context) {
  return std::make_unique<AllreduceBuckets>(context);
}

}  // namespace cohort::strategy
