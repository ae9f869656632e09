#include "strategy/gossip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <ranges>
#include <set>
#include <utility>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/vectorize.h"
#include "collective/sum_kernel.h"
#include "gossip/gradient_mail.h"
#include "gossip/model_age.h"
#include "gossip/parameter_mail.h"
#include "gossip/push_sum.h"
#include "gossip/settle.h"
#include "optimizer/square_sum.h"
#include "strategy/codec_shape.h"
#include "strategy/own_model.h"
#include "strategy/own_text.h"
#include "strategy/server_options.h"
#include "strategy/worker_sums.h"

namespace cohort {
namespace {

COHORT_VECTORIZE void scale_floats(float* values, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
}

void scale(std::span<float> values, double factor) {
  if (factor != 1) scale_floats(values.data(), values.size(), static_cast<float>(factor));
}

/// What GradientGossip and ParameterGossip leave in TrainingState::own.
const std::string kUntold = "gradients that peers were not told";
const std::string kAge = "steps in this worker's model";

/// What stands behind such a text; null where there is nothing of that name, or not as many.
const std::vector<float>* own_behind(const std::string& text, const TrainingState* start,
                                     std::size_t floats) {
  if (start == nullptr || start->own.size() != 2) return nullptr;
  const bool fits = text_of_floats(start->own[0]) == text && start->own[1].size() == floats;
  return fits ? &start->own[1] : nullptr;
}

/// What sending parameters and sending gradients have in common.
class Gossip : public Strategy {
 public:
  explicit Gossip(const StrategyContext& context)
      : context_(context),
        sums_(context),
        model_(context, sums_),
        claims_{.work = agreed_work(), .end_step = context.steps},
        first_step_(whole_steps(claims_.work)) {}

  Pace pace() const override { return {.lockstep = false, .hands_out_work = true}; }

  FlatSpace& space() override { return model_.space(); }

  std::string describe() const override {
    const std::string& codec = context_.options.compression.kind;
    return fmt::format("gossip: {} worker{} send {} to {} through {}{}{}", sums_.world(),
                       sums_.world() == 1 ? "" : "s", context_.options.send, receivers(),
                       context_.engine.shared_regions() != nullptr ? "shared memory" : "gRPC",
                       codec == "none" ? "" : ", compressed by ", codec == "none" ? "" : codec);
  }

  std::optional<Claim> next_work() override {
    const PhaseSpan span(context_.phases, Phase::communication);
    const std::optional<Claim> claim = boxes_->claims().next();
    if (claim) pieces_before_ = claims_.pieces_before(*claim);
    return claim;
  }

  void begin_last_backward(const Vote& vote) override {
    vote_ = vote;
    space().begin_last_backward();
  }

  StepOutcome finish_step(const UpdatePlan& plan) override {
    space().finish_step();
    StepOutcome outcome{.loss = vote_.loss};
    if (!std::isfinite(vote_.loss)) {
      outcome.diverged_rank = context_.engine.rank();
      return outcome;
    }
    if (plan.want_norm || plan.clip_norm > 0) {
      const PhaseSpan span(context_.phases, Phase::optimizer);
      outcome.gradient_norm = parts() * std::sqrt(sum_of_squares(model_.gradients()));
    }
    failpoint("gossip.before-update");
    take_turn(plan.lr, clip_scale(outcome.gradient_norm, plan.clip_norm));
    failpoint("gossip.after-update");
    boxes_->claims().done();
    outcome.consensus_distance = distance();
    if (vote_.stop) boxes_->claims().stop();
    outcome.stop = vote_.stop || boxes_->claims().stopped();
    return outcome;
  }

  void meet() override {
    boxes_->claims().finish();
    {
      const PhaseSpan span(context_.phases, Phase::wait);
      settle(*boxes_, context_.store,
             {.key = fmt::format("gossip/meeting/{}", meetings_++),
              .world = sums_.world(),
              .deadline = context_.timeout.deadline()},
             [this] { take_arrived(); });
    }
    const PhaseSpan span(context_.phases, Phase::communication);
    finish_mail();
    try {
      average_models();
    } catch (...) {
      take_mail_back();
      throw;
    }
    forget_mail();
  }

  void sum_over_workers(std::span<float> values) override { sums_.sum(values); }

  Traffic traffic() const override {
    const Traffic side = sums_.traffic();
    return {boxes_->bytes_sent() + side.sent, boxes_->bytes_received() + side.received};
  }

  std::int64_t first_step() const override { return first_step_; }

  void save_state(TrainingState& state) override {
    model_.save(state);
    state.work = boxes_->claims().left();
    state.step = whole_steps(state.work);
    state.own = own_floats();
  }

  void close() noexcept override {
    if (boxes_) boxes_->leave();
    sums_.close();
  }

 protected:
  /// One step of this worker: `clip` is what its gradients have to be multiplied by.
  virtual void take_turn(double lr, double clip) = 0;
  virtual std::optional<double> distance() const = 0;
  virtual std::string receivers() const = 0;

  /// Between the last step and the average: takes what is in the boxes,
  virtual void take_arrived() = 0;
  /// and once all have taken everything, does what is left to do.
  virtual void finish_mail() = 0;
  /// What finish_mail() did counts now that the average is there, or must be undone as there is
  /// none.
  virtual void forget_mail() {}
  virtual void take_mail_back() {}
  /// This worker's share in the average.
  virtual double weight() const = 0;
  /// Of this worker's model, which becomes the mean too.
  virtual double age() const { return 0; }
  virtual void set_age(double /*age*/) {}

  /// What only this worker has; see TrainingState::own.
  virtual std::vector<std::vector<float>> own_floats() const { return {}; }

  /// The gradients of a step are this worker's share of the mean over a batch; its own mean is so
  /// many times that.
  double parts() const { return static_cast<double>(context_.parts); }

  AgeRule age_rule() const { return {.parts = context_.parts, .workers = context_.engine.world()}; }

  /// Pieces of the job handed out before the one this worker works on.
  std::int64_t pieces_before() const { return pieces_before_; }
  /// Pieces done before this group of workers began.
  std::int64_t pieces_at_start() const {
    return claims_.work.next - static_cast<std::int64_t>(claims_.work.again.size());
  }

  MailOptions mail_options(Topology topology) const {
    return {.topology = topology,
            .place = {.rank = context_.engine.rank(),
                      .world = context_.engine.world(),
                      .seed = context_.seed},
            .ages = age_rule(),
            .compression = context_.options.compression,
            .shape = codec_shape(ModelLayout::of(context_.model).parameters)};
  }

  void make_boxes(Topology topology, std::size_t message_bytes) {
    boxes_ = make_peer_boxes({.topology = topology,
                              .message_bytes = message_bytes,
                              .claims = claims_,
                              .timeout = context_.timeout},
                             context_.engine, context_.store);
  }

  StrategyContext context_;
  WorkerSums sums_;
  OwnModel model_;
  std::unique_ptr<PeerBoxes> boxes_;

 private:
  /// What is left to do by all that the workers know of it. Without worker 0's it is everything.
  WorkLeft agreed_work() {
    std::vector<std::int64_t> own;
    if (const TrainingState* start = context_.start) {
      const bool same_parts = start->work.parts == context_.parts;
      const WorkLeft work = same_parts ? start->work : work_after(start->step, context_.parts);
      own.push_back(work.next);
      for (const Claim& claim : work.again) own.push_back(claim.step * work.parts + claim.part);
    }
    const auto all = sums_.gather(own);
    if (all.front().empty()) return work_after(0, context_.parts);
    std::vector<WorkLeft> views;
    for (const auto& numbers : all) {
      if (!numbers.empty()) views.push_back(work_of(numbers));
    }
    return merged_work(views);
  }

  /// The next number, then those to do again.
  WorkLeft work_of(std::span<const std::int64_t> numbers) const {
    WorkLeft work{.next = numbers.front(), .parts = context_.parts, .again = {}};
    for (const std::int64_t number : numbers.subspan(1)) {
      work.again.push_back(
          {.step = number / context_.parts, .part = static_cast<int>(number % context_.parts)});
    }
    return work;
  }

  struct PlaceInMean {
    double share;  ///< Of this worker's model.
    double age;    ///< Of the mean.
  };

  /// By the models' weights and ages. All call it together.
  PlaceInMean place_in_mean() {
    const std::array<std::int64_t, 2> own = {std::bit_cast<std::int64_t>(weight()),
                                             std::bit_cast<std::int64_t>(age())};
    std::vector<std::pair<double, double>> all;  // Weight and age.
    for (const auto& numbers : sums_.gather(own)) {
      all.emplace_back(std::bit_cast<double>(numbers[0]), std::bit_cast<double>(numbers[1]));
    }
    const double newest = std::ranges::max(all | std::views::values);
    double weights = 0;
    double ages = 0;
    for (auto& [weight, age] : all) {
      weight *= age_rule().weight_of_lag(newest - age);
      weights += weight;
      ages += weight * age;
    }
    const auto rank = static_cast<std::size_t>(context_.engine.rank());
    return {.share = all[rank].first / weights, .age = ages / weights};
  }

  /// Parameters become their mean by weights, buffers their mean, the same bits on all. A worker
  /// that is lost meanwhile leaves the models as they were.
  void average_models() {
    const auto parameters = model_.parameters();
    const auto buffers = model_.buffers();
    std::vector<float> sum(parameters.begin(), parameters.end());
    const PlaceInMean place = place_in_mean();
    scale(sum, place.share);
    sum.insert(sum.end(), buffers.begin(), buffers.end());
    sums_.sum(sum);

    const auto mean = std::span(sum).first(parameters.size());
    for (float& buffer : std::span(sum).subspan(parameters.size())) {
      buffer /= static_cast<float>(sums_.world());
    }
    const WeightedModel average{mean, 0};
    log_info(
        "rank {}: when the workers came together, its model was {:.2e} of its norm from "
        "their average",
        context_.engine.rank(), merge_models(parameters, 1, {&average, 1}).distance);
    set_age(place.age);
    std::ranges::copy(mean, parameters.begin());
    std::ranges::copy(std::span(sum).subspan(parameters.size()), buffers.begin());
  }

  ClaimRange claims_;
  std::int64_t first_step_;
  std::int64_t pieces_before_ = 0;
  Vote vote_;
  int meetings_ = 0;
};

class ParameterGossip : public Gossip {
 public:
  explicit ParameterGossip(const StrategyContext& context)
      : Gossip(context),
        mail_(mail_options(topology_named(context.options.topology)), model_.parameters()) {
    make_boxes(topology_named(context.options.topology), mail_.message_bytes());
    mail_.set_age(age_at_start(context.start));
  }

 protected:
  // What has arrived comes first: so a worker that was slow with its gradient adds it to a model
  // that is not old, and tells others of one that is not.
  void take_turn(double lr, double clip) override {
    PhaseSpan span(context_.phases, Phase::communication);
    mail_.merge(*boxes_, model_.parameters());
    span.next(Phase::optimizer);
    const double share = age_rule().share_of_piece(mail_.age(), pieces_before());
    model_.update(lr, parts() * clip, share);
    mail_.set_age(mail_.age() + share);
    span.next(Phase::communication);
    mail_.send(*boxes_, model_.parameters());
  }

  std::optional<double> distance() const override { return mail_.distance(); }
  std::string receivers() const override { return context_.options.topology + " neighbours"; }

  void take_arrived() override { mail_.merge(*boxes_, model_.parameters()); }
  void finish_mail() override {
    last_weight_ = mail_.weight();
    mail_.reset_weight();
  }
  double weight() const override { return last_weight_; }
  double age() const override { return mail_.age(); }
  void set_age(double age) override { mail_.set_age(age); }

  std::vector<std::vector<float>> own_floats() const override {
    const auto large = static_cast<float>(age());
    return {floats_of_text(kAge), {large, static_cast<float>(age() - large)}};
  }

 private:
  /// A model that came without an age has had all the pieces that are done. A worker without any
  /// has worker 0's. All call it together.
  double age_at_start(const TrainingState* start) {
    double own = static_cast<double>(pieces_at_start()) / parts();
    if (const auto* age = own_behind(kAge, start, 2)) own = (*age)[0] + (*age)[1];
    std::array<std::int64_t, 1> first = {std::bit_cast<std::int64_t>(own)};
    sums_.take_first(first);
    return start != nullptr ? own : std::bit_cast<double>(first[0]);
  }

  ParameterMail mail_;
  double last_weight_ = 1;
};

class GradientGossip : public Gossip {
 public:
  explicit GradientGossip(const StrategyContext& context)
      : Gossip(context), mail_(mail_options(Topology::all)) {
    make_boxes(Topology::all, mail_.message_bytes());
    if (corrects_momentum(context.options, context.optimizer_options)) {
      momentum_ = worker_momentum(context.optimizer_options);
      model_.use(make_optimizer(without_momentum(context.optimizer_options)));
    }
    const std::set<int> with_own_model = newcomers_with_own_model(context);
    const std::size_t floats = model_.gradients().size();
    if (const auto* untold = own_behind(kUntold, context.start, floats + 2)) {
      mail_.start_from({.gradients = {untold->begin(), untold->end() - 2},
                        .pieces = untold->end()[-2],
                        .rate = untold->back()},
                       with_own_model);
    }
  }

  /// What others have sent is in no one's model but theirs: it must not be lost with the boxes.
  void carry_state(TrainingState& state) override {
    take_arrived();
    if (pieces_.count > 0) apply_sum(0);
    save_state(state);
  }

 protected:
  void take_turn(double lr, double clip) override {
    PhaseSpan span(context_.phases, Phase::communication);
    const auto gradients = model_.gradients();
    scale(gradients, clip);
    if (momentum_.factor > 0) apply_own_momentum();
    mail_.send(*boxes_, gradients, lr);
    pieces_ = {.count = 1, .rates = lr};
    pieces_ += mail_.collect(*boxes_, gradients);
    span.next(Phase::optimizer);
    apply_sum(lr);
  }

  std::optional<double> distance() const override { return std::nullopt; }
  std::string receivers() const override { return "all"; }

  void take_arrived() override {
    if (!std::exchange(cleared_, true)) std::ranges::fill(model_.gradients(), 0.0F);
    pieces_ += mail_.collect(*boxes_, model_.gradients());
  }

  // What peers were never told is missing in their models, so it counts in the average as often as
  // it is missing: everybody applies its sum divided by the number of workers. That is right in the
  // average only. When a worker is lost before it is there, the others have their models as they
  // were, and still have what they were to tell, for the next group.
  void finish_mail() override {
    if (pieces_.count > 0) apply_sum(0);
    std::array<float, 2> pieces = {};  // That were not told: how many, and their rates.
    if (mail_.has_leftovers()) {
      const Pieces own = mail_.leftover_pieces();
      pieces = {static_cast<float>(own.count), static_cast<float>(own.rates)};
    }
    sums_.sum(pieces);
    if (pieces[0] == 0) return;
    const double rate = pieces[1] / pieces[0];
    std::vector<float> untold(model_.gradients().size() + 1);  // And of how many pieces.
    const auto gradients = std::span(untold).first(model_.gradients().size());
    untold.back() = static_cast<float>(mail_.add_leftovers(gradients).count);
    sums_.mean(untold);
    before_rest_ = model_.past();
    std::ranges::copy(gradients, model_.gradients().begin());
    pieces_ = {.count = untold.back(), .rates = untold.back() * rate};
    apply_sum(rate);
  }

  void forget_mail() override {
    if (before_rest_) mail_.forget_leftovers();
    before_rest_.reset();
  }

  void take_mail_back() override {
    if (before_rest_) model_.go_back(*before_rest_);
    before_rest_.reset();
  }

  double weight() const override { return 1; }

  std::vector<std::vector<float>> own_floats() const override {
    GradientMail::Leftovers untold = mail_.mean_leftovers();
    if (untold.gradients.empty()) return {};
    untold.gradients.push_back(static_cast<float>(untold.pieces));
    untold.gradients.push_back(static_cast<float>(untold.rate));
    return {floats_of_text(kUntold), std::move(untold.gradients)};
  }

 private:
  // Those who begin with this worker's model, which are told nothing that is in it. All call it
  // together.
  std::set<int> newcomers_with_own_model(const StrategyContext& context) {
    const std::array<std::int64_t, 1> own = {context.start != nullptr ? 1 : 0};
    const auto have_start = sums_.gather(own);
    std::set<int> newcomers;
    if (context.engine.rank() != 0) return newcomers;
    for (int rank = 0; rank < sums_.world(); ++rank) {
      if (have_start[static_cast<std::size_t>(rank)][0] == 0) newcomers.insert(rank);
    }
    return newcomers;
  }

  // The velocity stands where the optimizer's would, and like it is one of whole batches'
  // gradients.
  void apply_own_momentum() {
    const auto gradients = model_.gradients();
    scale(gradients, parts());
    apply_momentum(momentum_, model_.slot(0), gradients);
    scale(gradients, 1 / parts());
  }

  // The gradients of this worker and those that came: the share of a step that their pieces are, by
  // the rates of the steps these belong to. Where they are only what messages had left out of
  // earlier ones, they count as one, by `rate_of_rest`. Those of many steps, which came while this
  // worker was away, make as many updates: none is longer than a step.
  void apply_sum(double rate_of_rest) {
    clear_padding(space().layout().parameters, model_.gradients());
    const double lr = pieces_.rate_or(rate_of_rest);
    const double share = std::max(pieces_.count, 1.0) / parts();
    const double updates = std::ceil(share);
    for (int i = 0; i < updates; ++i) model_.update(lr, 1 / share, share / updates);
    pieces_ = {};
    cleared_ = false;
  }

  GradientMail mail_;
  WorkerMomentum momentum_;                    // Where it comes before the codec.
  Pieces pieces_;                              // Whose gradients are summed up.
  std::optional<OwnModel::Past> before_rest_;  // While it counts for the average only.
  bool cleared_ = false;  // The gradients' memory is used to collect what arrives late.
};

}  // namespace

std::unique_ptr<Strategy> make_gossip(const StrategyContext& context) {
  if (context.options.send == "gradients") return std::make_unique<GradientGossip>(context);
  return std::make_unique<ParameterGossip>(context);
}

}  // namespace cohort
