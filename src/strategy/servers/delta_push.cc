#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/vectorize.h"
#include "optimizer/optimizer.h"
#include "strategy/make_strategy.h"
#include "strategy/own_memory_forms.h"
#include "strategy/servers/server_order.h"
#include "strategy/servers/server_rule.h"
#include "strategy/servers/server_worker.h"

namespace cohort::strategy {
namespace {

// change[i] = now[i] - before[i]
COHORT_VECTORIZE void subtract(float* __restrict change, const float* __restrict now,
                               const float* __restrict before, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) change[i] = now[i] - before[i];
}

/// The worker makes steps of its own, on its part of the batches; every few steps the change of its
/// parameters goes to the servers.
///
///   finish_step()   a step of the worker's own optimizer; and every push_every() steps
///     1. change = parameters - what the last pull brought
///     2. push the change and pull, in one exchange
///     3. what was pulled becomes the model
///
/// In step (sync) all push after the same steps, the multiples of push_every() and the last one
/// they make, so the servers' version says which step their model is of. There a worker remembers
/// what it had at the last push: that is what is saved and carried, and the steps since are done
/// again. Where a run is asked to stop, its last step may be any; who carries a state over then
/// knows which version is of which step. Where work is handed out, pieces count as done once they
/// are pushed. Should the servers be lost before, the change is carried over and pushed to the next
/// ones: this worker's optimizer has seen it.
class DeltaPush : public ServerWorker {
 public:
  explicit DeltaPush(const StrategyContext& context)
      : ServerWorker(context),
        outer_slots_(server_rule(context.options, context.optimizer_options).slots()),
        own_((floats() * (2 + slot_count()) + 1) * sizeof(float)) {
    for (std::size_t slot = 0; slot < slot_count(); ++slot) {
      slots_.push_back(own_.floats().subspan(floats() * (2 + slot), floats()));
    }
    make_space(own_.floats().first(floats()), own_.floats().subspan(floats(), floats()));
    steps_done_ = first_step();
    note_push();
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    space_->finish_step();
    StepOutcome outcome;
    make_own_step(plan, outcome);
    steps_done_ = plan.step + 1;
    ++steps_since_push_;
    if (takes_claims()) unpushed_.push_back(piece());
    outcome.loss = vote_.loss;
    // In step all stop after the same push.
    outcome.stop = vote_.stop && takes_claims();
    if (push_is_due()) {
      const PhaseSpan span(context_.phases, Phase::communication);
      const server::ExchangeReply reply =
          push_change({.wants_next = plan.wants_next && gets_work_with_answers()});
      outcome.next = reply.claim;
      outcome.stop = outcome.stop || reply.stop;
      outcome.save = reply.save;
      if (takes_claims()) outcome.staleness = static_cast<double>(reply.staleness);
    }
    return outcome;
  }

  void save_state(tensor::TrainingState& state) override {
    save_servers(state, read_, at_push_.step);
    put_own_state(state);
    state.own.clear();
    save_link(state);
    if (outer_slots_ == 0) return;
    read_.dense.slots.resize(outer_slots_);
    std::vector<std::span<const float>> outer(read_.dense.slots.begin(), read_.dense.slots.end());
    set_own(state, kOuterSlots, outer);
  }

  void save_own_state(tensor::TrainingState& state) override {
    begin_own_state(state, takes_claims() ? known_step() : at_push_.step);
    put_own_state(state);
  }

  void carry_state(tensor::TrainingState& state) override {
    leave_with_servers(state, takes_claims() ? known_step() : at_push_.step);
    put_own_state(state);
    if (takes_claims() && state.unanswered.empty() && steps_since_push_ > 0) {
      state.unanswered = client_.unsent(change());
    }
    state.pushed.reset();
    if (takes_claims()) return;
    state.pushed = {.version = at_push_version_,
                    .next_step = has_pushed_ ? steps_done_ : next_push_after(at_push_.step)};
    if (!has_pushed_) return;
    std::vector<std::span<const float>> now(slots_.begin(), slots_.end());
    now.emplace_back(buffers());
    set_own(state, kPushed, now);
  }

 protected:
  std::string words() const override {
    const StrategyOptions& options = context_.options;
    const bool averaging = options.kind == "averaging";
    return fmt::format("{}, {}: {} worker{} push {} to {} server{} every {} step{}",
                       averaging ? "averaging" : "parameter server",
                       averaging ? options.mode : options.consistency, sums_.world(),
                       sums_.world() == 1 ? "" : "s", averaging ? "parameters" : "deltas",
                       context_.servers, context_.servers == 1 ? "" : "s", push_every(),
                       push_every() == 1 ? "" : "s");
  }

  void complete_first_model(const tensor::TrainingState& start,
                            server::ServerModel& model) const override {
    if (!takes_claims()) model.version = static_cast<std::uint64_t>(start.step / push_every());
    const auto outer = own_floats(&start, kOuterSlots);
    const bool fits = std::ranges::all_of(
        outer, [&](const std::vector<float>& slot) { return slot.size() == floats(); });
    if (fits && outer.size() == outer_slots_) model.dense.slots = {outer.begin(), outer.end()};
  }

  std::int64_t step_at(const tensor::TrainingState& start, std::uint64_t version) const override {
    if (takes_claims()) return start.step;
    if (start.pushed && version == start.pushed->version) return start.step;
    if (start.pushed && version == start.pushed->version + 1) return start.pushed->next_step;
    const auto pushes = static_cast<std::int64_t>(version);
    if (pushes == start.step / push_every()) return start.step;
    return std::min(pushes * push_every(), context_.steps);
  }

  void take_own_state(const tensor::TrainingState* start) override {
    const bool has_own =
        start != nullptr && (start->slots.size() == slot_count() || was_pushed(start));
    if (has_own) {
      const bool pushed = was_pushed(start);
      const std::span<const std::vector<float>> from =
          pushed ? own_floats(start, kPushed) : std::span(start->slots);
      own_steps_ = updates_before(*start, slot_count()) + (pushed ? first_step() - start->step : 0);
      for (std::size_t slot = 0; slot < std::min(from.size(), slots_.size()); ++slot) {
        if (from[slot].size() == slots_[slot].size()) {
          std::ranges::copy(from[slot], slots_[slot].begin());
        }
      }
    }
    if (first_step() == 0) return;
    const std::int64_t chiefs_steps = chiefs(own_steps_);
    if (!has_own) own_steps_ = chiefs_steps;
    for (const auto& slot : slots_) fill_from_chief(slot, has_own);
  }

  void last_push() override {
    if (steps_since_push_ > 0) {
      push_change({.finished = true});
      return;
    }
    server::Exchange exchange;
    exchange.finished = true;
    exchange_with_servers(exchange);
  }

  void take_parameters() override {
    std::ranges::copy(client_.incoming(), space_->memory().parameters.begin());
  }

 private:
  std::size_t slot_count() const { return context_.optimizer.slots().size(); }

  std::int64_t push_every() const {
    return steps_alone(context_.options, context_.steps_per_epoch);
  }

  std::int64_t next_push_after(std::int64_t step) const {
    return std::min((step / push_every() + 1) * push_every(), context_.steps);
  }

  bool push_is_due() const {
    return takes_claims() ? steps_since_push_ >= push_every() : steps_done_ % push_every() == 0;
  }

  void make_own_step(const UpdatePlan& plan, StepOutcome& outcome) {
    const PhaseSpan span(context_.phases, Phase::optimizer);
    const tensor::FlatMemory& memory = space_->memory();
    if (plan.want_norm || plan.clip_norm > 0) {
      outcome.gradient_norm =
          parts_of_step() * std::sqrt(optimizer::sum_of_squares(memory.gradients));
    }
    const double clip = optimizer::clip_scale(outcome.gradient_norm, plan.clip_norm);
    context_.optimizer.update(
        memory.parameters, memory.gradients, slots_,
        {.lr = plan.lr, .step = ++own_steps_, .gradient_scale = parts_of_step() * clip});
  }

  /// Of the parameters since the last push: it is where a push looks for it.
  server::Exchange change() {
    subtract(client_.outgoing().data(), space_->memory().parameters.data(),
             client_.incoming().data(), floats());
    server::Exchange exchange;
    exchange.push = true;
    exchange.pieces = unpushed_;
    return exchange;
  }

  struct Besides {
    bool finished = false;
    bool wants_next = false;
  };

  server::ExchangeReply push_change(const Besides& besides) {
    server::Exchange exchange = change();
    exchange.pull = true;
    exchange.finished = besides.finished;
    exchange.claim = besides.wants_next;
    has_pushed_ = true;
    const server::ExchangeReply reply = timed_exchange(exchange);
    take_parameters();
    note_push();
    return reply;
  }

  std::span<float> buffers() const { return space_->memory().buffers; }

  void note_push() {
    has_pushed_ = false;
    steps_since_push_ = 0;
    unpushed_.clear();
    if (takes_claims()) return;
    at_push_.step = steps_done_;
    at_push_version_ = client_.version();
    at_push_.updates = own_steps_;
    at_push_.slots.resize(slots_.size());
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      at_push_.slots[slot].assign(slots_[slot].begin(), slots_[slot].end());
    }
    at_push_.buffers.assign(buffers().begin(), buffers().end());
  }

  /// What this worker has beside the servers' model: in step that of the last push.
  void put_own_state(tensor::TrainingState& state) const {
    if (!takes_claims()) {
      state.updates = at_push_.updates;
      state.slots = at_push_.slots;
      state.buffers = at_push_.buffers;
      return;
    }
    state.updates = own_steps_;
    state.slots.resize(slots_.size());
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      state.slots[slot].assign(slots_[slot].begin(), slots_[slot].end());
    }
    state.buffers.assign(buffers().begin(), buffers().end());
  }

  std::size_t outer_slots_;  // Of the servers.
  os::PrivateMemory own_;    // Parameters, gradients, slots.
  std::vector<std::span<float>> slots_;
  std::int64_t own_steps_ = 0;            // Updates that made the slots.
  std::int64_t steps_done_ = 0;           // Of the job, as far as this worker knows.
  std::int64_t steps_since_push_ = 0;     // That are not pushed yet.
  std::vector<cluster::Claim> unpushed_;  // Where work is handed out: the same as pieces.
  bool has_pushed_ = false;               // And has got no answer yet.
  tensor::TrainingState at_push_;  // In step: what this worker had after the last push it knows of,
  std::uint64_t at_push_version_ = 0;  // and the servers' version then.
  server::ServerModel read_;           // Of save_state().
};

}  // namespace

std::unique_ptr<Strategy> make_delta_push(const StrategyContext& context) {
  return std::make_unique<DeltaPush>(context);
}

}  // namespace cohort::strategy
