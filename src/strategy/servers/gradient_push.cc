#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collective/sum_kernel.h"
#include "optimizer/optimizer.h"
#include "strategy/make_strategy.h"
#include "strategy/own_memory_forms.h"
#include "strategy/servers/server_order.h"
#include "strategy/servers/server_rule.h"
#include "strategy/servers/server_worker.h"

namespace cohort::strategy {
namespace {

/// Every step's gradients go to the servers, which read them where the backward pass left them, and
/// write the new parameters where the next forward pass looks for them.
///
///   in step      push and pull are one exchange: it returns when all workers' gradients are in the
///                parameters. With clipping there are two: push and *hold*, which tells the norm of
///                the whole gradient, then *apply* with the factor that follows from it
///   handed out   clip by the own norm, own momentum where servers have none (ServerRule); push,
///                pull and ask for the next piece, all in one exchange. With k-of-n the servers may
///                keep it until others have pushed, with `bounded` until a piece may be handed out;
///                otherwise it waits for nobody
///
/// *Good* is what this worker knows to be applied: in step it saves and carries good buffers and
/// the good step, and beside them what it has if the servers have made the update of a push that
/// got no answer (kPushed). Where work is handed out it carries that push itself.
class GradientPush : public ServerWorker {
 public:
  explicit GradientPush(const StrategyContext& context)
      : ServerWorker(context),
        rule_(server_rule(context.options, context.optimizer_options)),
        server_slots_(rule_.slots()) {
    if (rule_.worker_momentum.factor > 0) velocity_.resize(floats());
    make_space(client_.incoming(), client_.outgoing());
    good_updates_ = static_cast<std::int64_t>(client_.version());
    note_good_step(first_step());
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    space_->finish_step();
    const PhaseSpan span(context_.phases, Phase::communication);
    if (!in_lockstep()) return finish_own(plan);
    has_pushed_ = true;
    const StepOutcome outcome = plan.clip_norm > 0 ? finish_clipped(plan) : finish_together(plan);
    if (outcome.diverged_rank >= 0) {
      go_back();
    } else {
      ++good_updates_;
      note_good_step(plan.step + 1);
    }
    return outcome;
  }

  void save_state(tensor::TrainingState& state) override {
    save_servers(state, read_, good_step_);
    state.updates = static_cast<std::int64_t>(read_.version);
    state.slots.resize(has_all_slots() || !velocity_.empty() ? slot_count() : 0);
    for (std::size_t slot = 0; has_all_slots() && slot < slot_count(); ++slot) {
      from_servers(order_, read_, static_cast<int>(slot), state.slots[slot]);
    }
    if (!velocity_.empty()) save_velocity(state.slots.front());
    const std::span<const float> buffers_now = in_lockstep() ? good_buffers_ : buffers();
    state.buffers.assign(buffers_now.begin(), buffers_now.end());
    state.own.clear();
    put_velocity(state);
    save_link(state);
  }

  void save_own_state(tensor::TrainingState& state) override {
    begin_own_state(state, in_lockstep() ? good_step_ : known_step());
    put_velocity(state);
    const std::span<const float> buffers_now = in_lockstep() ? good_buffers_ : buffers();
    state.buffers.assign(buffers_now.begin(), buffers_now.end());
  }

  void carry_state(tensor::TrainingState& state) override {
    leave_with_servers(state, in_lockstep() ? good_step_ : known_step());
    state.updates = good_updates_;
    state.slots.clear();
    if (!in_lockstep()) {
      state.buffers.assign(buffers().begin(), buffers().end());
      if (!velocity_.empty()) set_own(state, kOwnVelocity, {velocity_});
      return;
    }
    state.buffers = good_buffers_;
    if (has_pushed_) set_own(state, kPushed, {buffers()});
  }

 protected:
  std::string words() const override {
    return fmt::format("parameter server, {}: {} worker{} push gradients to {} server{}",
                       context_.options.consistency, sums_.world(), sums_.world() == 1 ? "" : "s",
                       context_.servers, context_.servers == 1 ? "" : "s");
  }

  void complete_first_model(const tensor::TrainingState& start,
                            server::ServerModel& model) const override {
    model.version = static_cast<std::uint64_t>(updates_at(start));
    if (!has_all_slots() || start.slots.size() != slot_count()) return;
    for (std::size_t slot = 0; slot < slot_count(); ++slot) {
      to_servers(order_, start.slots[slot], model, static_cast<int>(slot));
    }
  }

  std::int64_t step_at(const tensor::TrainingState& start, std::uint64_t version) const override {
    if (!in_lockstep()) return start.step;
    return start.step + static_cast<std::int64_t>(version) - updates_at(start);
  }

  void take_own_state(const tensor::TrainingState* start) override {
    if (velocity_.empty()) return;
    const auto own = own_floats(start, kOwnVelocity);
    if (own.size() == 1 && own[0].size() == velocity_.size()) {
      velocity_ = own[0];
      collective::multiply(velocity_, parts_in(start->own) / parts_of_step());
    } else if (start != nullptr && start->slots.size() == 1) {
      order_.take_dense(start->slots[0], velocity_);
      collective::multiply(velocity_, 1 / parts_of_step());
    }
    // Not by the step: in the first one pieces may have been pushed already.
    if (chiefs(start != nullptr ? 1 : 0) > 0) fill_from_chief(velocity_, start != nullptr);
  }

  void last_push() override {
    server::Exchange exchange;
    exchange.finished = true;
    exchange_with_servers(exchange);
  }

  void take_parameters() override {}  // They are pulled to where the model looks for them.

 private:
  /// The servers' version at this state. In lockstep both go on together, one update a step; they
  /// may begin apart, where the slots are of another strategy.
  std::int64_t updates_at(const tensor::TrainingState& state) const {
    const bool servers_have_it = state.parameters.empty();
    return servers_have_it ? state.updates : updates_before(state, server_slots_);
  }

  server::Exchange exchange_of(const UpdatePlan& plan) const {
    server::Exchange exchange;
    exchange.push = true;
    exchange.want_norm = plan.want_norm && in_lockstep();
    exchange.lr = plan.lr;
    exchange.loss = vote_.loss;
    return exchange;
  }

  /// A step that nobody waits for.
  StepOutcome finish_own(const UpdatePlan& plan) {
    server::Exchange push = exchange_of(plan);
    StepOutcome outcome;
    double factor = 1;
    if (plan.clip_norm > 0 || plan.want_norm) {
      outcome.gradient_norm = own_norm();
      factor = optimizer::clip_scale(outcome.gradient_norm, plan.clip_norm);
      collective::multiply(client_.outgoing(), factor);
    }
    if (!velocity_.empty()) {
      compression::apply_momentum(rule_.worker_momentum, velocity_, client_.outgoing());
    }
    push.pull = true;
    push.claim = plan.wants_next && gets_work_with_answers();
    push.pieces = {piece()};
    add_touched_rows(push, factor);
    return completed(outcome, timed_exchange(push));
  }

  StepOutcome finish_together(const UpdatePlan& plan) {
    server::Exchange push = exchange_of(plan);
    push.pull = true;
    add_touched_rows(push, 1);
    const server::ExchangeReply reply = timed_exchange(push);
    StepOutcome outcome;
    outcome.gradient_norm = std::sqrt(reply.square_sum);
    return completed(outcome, reply);
  }

  /// The norm is that of all workers' gradients on all servers, so it is asked for first.
  StepOutcome finish_clipped(const UpdatePlan& plan) {
    server::Exchange push = exchange_of(plan);
    push.hold = true;
    push.want_norm = true;
    add_touched_rows(push, 1);
    const server::ExchangeReply held = timed_exchange(push);
    StepOutcome outcome;
    outcome.gradient_norm = std::sqrt(held.square_sum);
    if (held.diverged_rank >= 0) return completed(outcome, held);
    server::Exchange apply;
    apply.apply = true;
    apply.pull = true;
    apply.lr = plan.lr;
    apply.scale = optimizer::clip_scale(outcome.gradient_norm, plan.clip_norm);
    timed_exchange(apply);
    return completed(outcome, held);
  }

  StepOutcome completed(StepOutcome outcome, const server::ExchangeReply& reply) const {
    outcome.loss = in_lockstep() ? reply.loss : vote_.loss;
    outcome.stop = reply.stop || vote_.stop;
    outcome.save = reply.save;
    outcome.diverged_rank = reply.diverged_rank;
    if (!in_lockstep()) outcome.staleness = static_cast<double>(reply.staleness);
    outcome.next = reply.claim;
    return outcome;
  }

  double own_norm() const {
    return parts_of_step() *
           std::sqrt(optimizer::sum_of_squares(client_.outgoing()) + table_square_sum());
  }

  std::span<float> buffers() const { return space_->memory().buffers; }
  std::size_t slot_count() const { return context_.optimizer.slots().size(); }
  /// Otherwise they have none: somebody else keeps the momentum.
  bool has_all_slots() const { return server_slots_ == slot_count(); }

  void note_good_step(std::int64_t step) {
    has_pushed_ = false;
    good_step_ = step;
    if (in_lockstep()) good_buffers_.assign(buffers().begin(), buffers().end());
  }

  /// The step was not applied: the buffers are as after the last one that was.
  void go_back() {
    has_pushed_ = false;
    std::ranges::copy(good_buffers_, buffers().begin());
    fetch_tables_for_chief();
  }

  /// With the number of parts that a step had whose gradients it is of: the fewer, the larger.
  void put_velocity(tensor::TrainingState& state) const {
    if (velocity_.empty()) return;
    set_own(state, kOwnVelocity, {velocity_});
    state.own.numbers = {static_cast<std::int64_t>(parts_of_step())};
  }

  double parts_in(const tensor::OwnMemory& own) const {
    constexpr std::int64_t kMostWorkers = 4096;
    const bool says_it =
        own.numbers.size() == 1 && own.numbers[0] >= 1 && own.numbers[0] <= kMostWorkers;
    return says_it ? static_cast<double>(own.numbers[0]) : parts_of_step();
  }

  /// Each worker has that of its own gradients; all together they are the step's.
  void save_velocity(std::vector<float>& slot) const {
    slot.assign(order_.floats(), 0);
    order_.put_dense(velocity_, slot);
    collective::multiply(slot, parts_of_step());
  }

  ServerRule rule_;
  std::size_t server_slots_;         // Of the optimizer the servers have.
  std::vector<float> velocity_;      // Where this worker keeps the momentum.
  std::int64_t good_step_ = 0;       // In lockstep: steps this worker knows to be applied,
  std::int64_t good_updates_ = 0;    // the servers' version after them,
  std::vector<float> good_buffers_;  // the buffers after them,
  bool has_pushed_ = false;          // and whether it has pushed the next.
  server::ServerModel read_;         // Of save_state().
};

}  // namespace

std::unique_ptr<Strategy> make_gradient_push(const StrategyContext& context) {
  return std::make_unique<GradientPush>(context);
}

}  // namespace cohort::strategy
