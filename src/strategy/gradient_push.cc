#include "strategy/gradient_push.h"

#include <fmt/format.h>

#include <cmath>

#include "base/vectorize.h"
#include "optimizer/square_sum.h"
#include "strategy/server_options.h"
#include "strategy/server_worker.h"

namespace cohort {
namespace {

/// velocity = momentum * velocity + gradient; the gradient becomes what SGD would step by.
COHORT_VECTORIZE void apply_momentum(std::span<float> gradient, std::span<float> velocity,
                                     float momentum, bool nesterov) {
  const float ahead = nesterov ? momentum : 1;
  const float own = nesterov ? 1 : 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    velocity[i] = momentum * velocity[i] + gradient[i];
    gradient[i] = own * gradient[i] + ahead * velocity[i];
  }
}

/// Every step's gradients go to the servers, which read them where the backward pass left them, and
/// write the new parameters where the next forward pass looks for them.
class GradientPush : public ServerWorker {
 public:
  explicit GradientPush(const StrategyContext& context)
      : ServerWorker(context),
        rule_(server_rule(context.options, context.optimizer_options, sums_.world())) {
    if (rule_.worker_momentum > 0) velocity_.resize(floats());
    make_space(client_.incoming(), client_.outgoing());
  }

  std::string describe() const override {
    return fmt::format("parameter server, {}: {} worker{} push gradients to {} server{}",
                       context_.options.consistency, sums_.world(), sums_.world() == 1 ? "" : "s",
                       context_.servers, context_.servers == 1 ? "" : "s");
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    space_->finish_step();
    const PhaseSpan span(context_.phases, Phase::communication);
    const bool clips = plan.clip_norm > 0;
    Exchange push = exchange_of(plan);
    if (clips && in_lockstep()) return finish_clipped(plan, push);
    StepOutcome outcome;
    double factor = 1;
    if (clips || (plan.want_norm && !in_lockstep())) {
      outcome.gradient_norm = own_norm();
      factor = clip_scale(outcome.gradient_norm, plan.clip_norm);
      for (float& gradient : client_.outgoing()) gradient *= static_cast<float>(factor);
    }
    if (!velocity_.empty()) {
      apply_momentum(client_.outgoing(), velocity_, static_cast<float>(rule_.worker_momentum),
                     context_.optimizer_options.nesterov);
    }
    push.pull = true;
    add_touched_rows(push, factor);
    const ExchangeReply reply = timed_exchange(push);
    if (in_lockstep()) outcome.gradient_norm = std::sqrt(reply.square_sum);
    return completed(outcome, reply);
  }

 protected:
  void last_push() override {
    Exchange exchange;
    exchange.finished = true;
    exchange_with_servers(exchange);
  }

  void take_parameters() override {}  // They are pulled to where the model looks for them.

 private:
  Exchange exchange_of(const UpdatePlan& plan) const {
    Exchange exchange;
    exchange.push = true;
    exchange.want_norm = plan.want_norm && in_lockstep();
    exchange.lr = plan.lr * rule_.lr_factor;
    exchange.loss = vote_.loss;
    return exchange;
  }

  /// The norm is that of all workers' gradients on all servers, so it is asked for first.
  StepOutcome finish_clipped(const UpdatePlan& plan, Exchange& push) {
    push.hold = true;
    push.want_norm = true;
    add_touched_rows(push, 1);
    const ExchangeReply held = timed_exchange(push);
    StepOutcome outcome;
    outcome.gradient_norm = std::sqrt(held.square_sum);
    if (held.diverged_rank >= 0) return completed(outcome, held);
    Exchange apply;
    apply.apply = true;
    apply.pull = true;
    apply.lr = plan.lr;
    apply.scale = clip_scale(outcome.gradient_norm, plan.clip_norm);
    timed_exchange(apply);
    return completed(outcome, held);
  }

  StepOutcome completed(StepOutcome outcome, const ExchangeReply& reply) const {
    outcome.loss = in_lockstep() ? reply.loss : vote_.loss;
    outcome.stop = reply.stop || vote_.stop;
    outcome.diverged_rank = reply.diverged_rank;
    if (!in_lockstep()) outcome.staleness = static_cast<double>(reply.staleness);
    return outcome;
  }

  double own_norm() const {
    // The gradients are this worker's share of the mean over all; its own mean is `world` times
    // that.
    return sums_.world() * std::sqrt(sum_of_squares(client_.outgoing()) + table_square_sum());
  }

  ServerRule rule_;
  std::vector<float> velocity_;  // Where this worker keeps the momentum.
};

}  // namespace

std::unique_ptr<Strategy> make_gradient_push(const StrategyContext& context) {
  return std::make_unique<GradientPush>(context);
}

}  // namespace cohort
