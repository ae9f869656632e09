#include "strategy/delta_push.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/vectorize.h"
#include "optimizer/square_sum.h"
#include "strategy/server_worker.h"

namespace cohort {
namespace {

// change[i] = now[i] - before[i]
COHORT_VECTORIZE void subtract(float* __restrict change, const float* __restrict now,
                               const float* __restrict before, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) change[i] = now[i] - before[i];
}

/// The worker makes steps of its own, on its part of the batches; every few steps the change of its
/// parameters goes to the servers.
class DeltaPush : public ServerWorker {
 public:
  explicit DeltaPush(const StrategyContext& context)
      : ServerWorker(context), own_((floats() * (2 + slot_count()) + 1) * sizeof(float)) {
    make_space(own_.floats().first(floats()), own_.floats().subspan(floats(), floats()));
  }

  std::string describe() const override {
    const StrategyOptions& options = context_.options;
    const bool averaging = options.kind == "averaging";
    return fmt::format("{}, {}: {} worker{} push {} to {} server{} every {} step{}",
                       averaging ? "averaging" : "parameter server",
                       averaging ? options.mode : options.consistency, sums_.world(),
                       sums_.world() == 1 ? "" : "s", averaging ? "parameters" : "deltas",
                       context_.servers, context_.servers == 1 ? "" : "s", push_every(),
                       push_every() == 1 ? "" : "s");
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    space_->finish_step();
    StepOutcome outcome;
    make_own_step(plan, outcome);
    outcome.loss = vote_.loss;
    outcome.stop = vote_.stop;
    if (++steps_since_push_ >= push_every()) {
      const PhaseSpan span(context_.phases, Phase::communication);
      const ExchangeReply reply = push_change(false);
      outcome.stop = outcome.stop || reply.stop;
      if (context_.options.mode != "sync" || context_.options.consistency != "sync") {
        outcome.staleness = static_cast<double>(reply.staleness);
      }
    }
    return outcome;
  }

 protected:
  void last_push() override {
    if (steps_since_push_ > 0) {
      push_change(true);
      return;
    }
    Exchange exchange;
    exchange.finished = true;
    exchange_with_servers(exchange);
  }

  void take_parameters() override {
    std::ranges::copy(client_.incoming(), space_->memory().parameters.begin());
  }

 private:
  std::size_t slot_count() const { return context_.optimizer.slots().size(); }

  std::int64_t push_every() const {
    const StrategyOptions& options = context_.options;
    if (options.kind != "averaging") return options.local_steps;
    return options.every > 0 ? options.every : context_.steps_per_epoch;
  }

  // The gradients are this worker's share of the mean over all; its own mean is `world` times that.
  void make_own_step(const UpdatePlan& plan, StepOutcome& outcome) {
    const PhaseSpan span(context_.phases, Phase::optimizer);
    const auto world = static_cast<double>(sums_.world());
    const FlatMemory& memory = space_->memory();
    if (plan.want_norm || plan.clip_norm > 0) {
      outcome.gradient_norm = world * std::sqrt(sum_of_squares(memory.gradients));
    }
    const double clip = clip_scale(outcome.gradient_norm, plan.clip_norm);
    std::vector<std::span<float>> slots;
    for (std::size_t slot = 0; slot < slot_count(); ++slot) {
      slots.push_back(own_.floats().subspan(floats() * (2 + slot), floats()));
    }
    context_.optimizer.update(
        memory.parameters, memory.gradients, slots,
        {.lr = plan.lr, .step = ++own_steps_, .gradient_scale = world * clip});
  }

  ExchangeReply push_change(bool finished) {
    subtract(client_.outgoing().data(), space_->memory().parameters.data(),
             client_.incoming().data(), floats());
    Exchange exchange;
    exchange.push = true;
    exchange.pull = true;
    exchange.finished = finished;
    const ExchangeReply reply = timed_exchange(exchange);
    take_parameters();
    steps_since_push_ = 0;
    return reply;
  }

  PrivateMemory own_;  // Parameters, gradients, slots.
  std::int64_t own_steps_ = 0;
  std::int64_t steps_since_push_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_delta_push(const StrategyContext& context) {
  return std::make_unique<DeltaPush>(context);
}

}  // namespace cohort
