#include "strategy/gossip/gossip_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "cluster/all_or_none.h"
#include "collective/sum_kernel.h"
#include "gossip/boxes/peer_boxes.h"
#include "gossip/model_age.h"
#include "gossip/push_sum.h"
#include "optimizer/optimizer.h"
#include "strategy/compressed_gradients.h"

namespace cohort::strategy {

// Rank 0's model goes to all first; whoever has brought one along then puts its own in its place.
OwnModel::OwnModel(const StrategyContext& context, WorkerSums& sums)
    : optimizer_(context.optimizer) {
  const tensor::ModelLayout layout = tensor::ModelLayout::of(context.model);
  const std::size_t size = layout.parameters.size;
  const std::size_t slot_count = optimizer_.slots().size();
  floats_ = os::PrivateMemory((size * (2 + slot_count) + layout.buffers.size + 1) * sizeof(float));
  auto rest = floats_.floats();
  const auto next = [&](std::size_t count) {
    const auto part = rest.first(count);
    rest = rest.subspan(count);
    return part;
  };
  memory_ = {.parameters = next(size), .slots = {}, .buffers = next(layout.buffers.size)};
  const auto gradients = next(size);
  for (std::size_t slot = 0; slot < slot_count; ++slot) memory_.slots.push_back(next(size));

  const bool is_first = context.engine.rank() == 0;
  ModelAge age;
  if (is_first) age = load_start(context, memory_);
  sums.take_first(memory_, age);
  if (!is_first && context.start != nullptr) age = load_start(context, memory_);
  updates_ = age.updates;
  space_.emplace(context.model, tensor::FlatMemory{.parameters = memory_.parameters,
                                                   .gradients = gradients,
                                                   .buffers = memory_.buffers});
}

void OwnModel::update(double lr, double gradient_scale, double share) {
  const optimizer::Optimizer& optimizer = rule_ ? *rule_ : optimizer_;
  optimizer.update(
      memory_.parameters, gradients(), std::span(memory_.slots).first(optimizer.slots().size()),
      {.lr = lr, .step = ++updates_, .gradient_scale = gradient_scale, .share = share});
}

OwnModel::Past OwnModel::past() const {
  Past past{.floats = {memory_.parameters.begin(), memory_.parameters.end()}, .updates = updates_};
  for (const std::span<float> slot : memory_.slots) {
    past.floats.insert(past.floats.end(), slot.begin(), slot.end());
  }
  return past;
}

void OwnModel::go_back(const Past& past) {
  auto from = std::span(past.floats);
  const auto take = [&](std::span<float> into) {
    std::ranges::copy(from.first(into.size()), into.begin());
    from = from.subspan(into.size());
  };
  take(memory_.parameters);
  for (const std::span<float> slot : memory_.slots) take(slot);
  updates_ = past.updates;
}

void OwnModel::save(tensor::TrainingState& state) const {
  save_model(memory_, state);
  state.updates = updates_;
}

GossipWorker::GossipWorker(const StrategyContext& context, std::string receivers)
    : context_(context),
      sums_(context),
      model_(context, sums_),
      receivers_(std::move(receivers)),
      claims_{.work = agreed_work(), .end_step = context.steps},
      first_step_(gossip::whole_steps(claims_.work)) {}

StrategyReport GossipWorker::report() const {
  const std::string& codec = context_.options.compression.kind;
  Traffic traffic = boxes_->traffic() + sums_.traffic();
  traffic.left_out = static_cast<std::uint64_t>(arrivals().left_out);
  return {fmt::format("gossip: {} worker{} send {} to {} through {}{}{}", sums_.world(),
                      sums_.world() == 1 ? "" : "s", context_.options.send, receivers_,
                      context_.engine.shared_regions() != nullptr ? "shared memory" : "gRPC",
                      codec == "none" ? "" : ", compressed by ", codec == "none" ? "" : codec),
          traffic};
}

std::optional<cluster::Claim> GossipWorker::next_work() {
  const PhaseSpan span(context_.phases, Phase::communication);
  const std::optional<cluster::Claim> claim = boxes_->claims().next();
  if (claim) pieces_before_ = claims_.pieces_before(*claim);
  return claim;
}

void GossipWorker::begin_last_backward(const Vote& vote) {
  vote_ = vote;
  space().begin_last_backward();
}

// A loss that is not finite is not passed on: the worker takes no turn, and its piece is not done.
StepOutcome GossipWorker::finish_step(const UpdatePlan& plan) {
  space().finish_step();
  StepOutcome outcome{.loss = vote_.loss};
  if (!std::isfinite(vote_.loss)) {
    outcome.diverged_rank = context_.engine.rank();
    return outcome;
  }
  if (plan.want_norm || plan.clip_norm > 0) {
    const PhaseSpan span(context_.phases, Phase::optimizer);
    outcome.gradient_norm = parts() * std::sqrt(optimizer::sum_of_squares(model_.gradients()));
  }
  failpoint("gossip.before-update");
  take_turn(plan.lr, optimizer::clip_scale(outcome.gradient_norm, plan.clip_norm));
  failpoint("gossip.after-update");
  boxes_->claims().done();
  outcome.consensus_distance = arrivals().distance;
  if (vote_.stop) boxes_->claims().stop();
  outcome.stop = vote_.stop || boxes_->claims().stopped();
  return outcome;
}

// See the class for the order. What finish_mail() does is right in the average only, so it is taken
// back where there is none; a loss after all had the average does not undo it, but is reported.
void GossipWorker::meet() {
  boxes_->claims().finish();
  const std::string meeting = fmt::format("gossip/meeting/{}", meetings_++);
  {
    const PhaseSpan span(context_.phases, Phase::wait);
    gossip::come_together(
        *boxes_, context_.store,
        {.key = meeting, .world = sums_.world(), .deadline = context_.timeout.deadline()},
        [this] { take_arrived(); });
  }
  const PhaseSpan span(context_.phases, Phase::communication);
  finish_mail();
  std::optional<Error> lost;
  try {
    lost = average_models(meeting + "/mean");
  } catch (...) {
    end_mail(/*averaged=*/false);
    throw;
  }
  end_mail(/*averaged=*/true);
  if (lost) throw *lost;
}

void GossipWorker::save_state(tensor::TrainingState& state) {
  model_.save(state);
  state.work = boxes_->claims().left();
  state.step = gossip::whole_steps(state.work);
  state.own = own_memory();
}

void GossipWorker::close() noexcept {
  if (boxes_) boxes_->attendance().leave();
  sums_.close();
}

gossip::MailOptions GossipWorker::mail_options(gossip::Topology topology) const {
  return {.topology = topology,
          .place = {.rank = context_.engine.rank(),
                    .world = context_.engine.world(),
                    .seed = context_.seed},
          .compression = context_.options.compression,
          .shape = codec_shape(tensor::ModelLayout::of(context_.model).parameters),
          .job = {.steps = static_cast<double>(context_.steps),
                  .parts = parts(),
                  .rate = context_.optimizer_options.lr}};
}

void GossipWorker::make_boxes(gossip::Topology topology, std::size_t message_bytes) {
  boxes_ = gossip::make_peer_boxes({.topology = topology,
                                    .message_bytes = message_bytes,
                                    .claims = claims_,
                                    .timeout = context_.timeout},
                                   context_.engine, context_.store);
}

/// What is left to do by all that the workers know of it. Without rank 0's it is everything.
cluster::WorkLeft GossipWorker::agreed_work() {
  std::vector<std::int64_t> own;
  if (const tensor::TrainingState* start = context_.start) {
    const bool same_parts = start->work.parts == context_.parts;
    const cluster::WorkLeft work =
        same_parts ? start->work : work_after(start->step, context_.parts);
    own.push_back(work.next);
    own.push_back(start->copy_of.value_or(context_.engine.rank()));
    for (const cluster::Claim& claim : work.again)
      own.push_back(claim.step * work.parts + claim.part);
  }
  const auto all = sums_.gather<std::int64_t>(own);
  for (const auto& numbers : all)
    model_of_.push_back(numbers.empty() ? 0 : static_cast<int>(numbers[1]));
  if (all.front().empty()) return work_after(0, context_.parts);
  std::vector<cluster::WorkLeft> views;
  for (const auto& numbers : all) {
    if (!numbers.empty()) views.push_back(work_of(numbers));
  }
  return gossip::merged_work(views);
}

/// The next number, whose model this is, then those to do again.
cluster::WorkLeft GossipWorker::work_of(std::span<const std::int64_t> numbers) const {
  cluster::WorkLeft work{.next = numbers.front(), .parts = context_.parts, .again = {}};
  for (const std::int64_t number : numbers.subspan(2)) {
    work.again.push_back(
        {.step = number / context_.parts, .part = static_cast<int>(number % context_.parts)});
  }
  return work;
}

/// By the models' weights and ages. All call it together.
GossipWorker::PlaceInMean GossipWorker::place_in_mean() {
  const auto rank = static_cast<std::size_t>(context_.engine.rank());
  const auto world = static_cast<std::size_t>(sums_.world());
  std::vector<double> all(2 * world);  // Everybody's weight, then everybody's age.
  const Standing mine = standing();
  all[rank] = mine.weight;
  all[world + rank] = mine.age;
  sums_.sum(all);
  const auto weights = std::span(all).first(world);
  const auto ages = std::span(all).last(world);

  const std::vector<double> shares = gossip::shares_in_mean(weights, ages);
  return {.share = shares[rank], .age = gossip::age_of_mean(shares, ages)};
}

/// Returns when all workers that are left shall use what they have in common now, with the loss
/// that broke the group where there was one; throws when none of them shall, as one was lost before
/// it had it.
std::optional<Error> GossipWorker::agree(const std::string& key) {
  cluster::AllOrNone decision(context_.store, key, sums_.world());
  decision.arrive();
  std::optional<Error> lost;
  try {
    sums_.wait_for_all();
  } catch (const Error& error) {
    lost = error;
  }
  // Also who has heard of all: in a tree one branch may be through and another one broken.
  if (decision.all_arrived()) return lost;
  if (lost) throw *lost;
  fail(ErrorCode::peer_lost, "a worker was lost before all had the average");
}

/// Parameters become their mean by weights, buffers their mean, the same bits on all. A worker
/// that is lost meanwhile leaves the models as they were, on all others.
std::optional<Error> GossipWorker::average_models(const std::string& key) {
  const auto parameters = model_.parameters();
  const auto buffers = model_.buffers();
  std::vector<float> sum(parameters.begin(), parameters.end());
  const PlaceInMean place = place_in_mean();
  collective::multiply(sum, place.share);
  sum.insert(sum.end(), buffers.begin(), buffers.end());
  sums_.sum(sum);
  std::optional<Error> lost = agree(key);

  const auto mean = std::span(sum).first(parameters.size());
  for (float& buffer : std::span(sum).subspan(parameters.size())) {
    buffer /= static_cast<float>(sums_.world());
  }
  const gossip::WeightedModel average{mean, 0};
  log_info(
      "rank {}: when the workers came together, its model was {:.2e} of its norm from "
      "their average",
      context_.engine.rank(), gossip::merge_models(parameters, 1, {&average, 1}).distance);
  set_age(place.age);
  std::ranges::copy(mean, parameters.begin());
  std::ranges::copy(std::span(sum).subspan(parameters.size()), buffers.begin());
  return lost;
}

}  // namespace cohort::strategy
