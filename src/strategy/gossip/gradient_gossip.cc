#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "collective/sum_kernel.h"
#include "compression/error_feedback.h"
#include "gossip/mail.h"
#include "optimizer/optimizer.h"
#include "strategy/compressed_gradients.h"
#include "strategy/gossip/gossip_worker.h"
#include "strategy/make_strategy.h"
#include "strategy/own_memory_forms.h"

namespace cohort::strategy {
namespace {

/// Gradients travel, to all, and everybody applies everybody's. What makes models drift apart is
/// what some have been told and others not yet.
///
/// A turn: clip; momentum, where that comes before the codec; send the gradient to all; add what
/// has arrived to it; apply the sum. *Pieces* counts whose gradients are in a sum, and their rates:
/// a sum of n pieces is n / parts of a step.
///
/// *Untold* or *leftover* is what a codec has left out, and what waits here because a peer has not
/// taken what came before (gossip/mail.h). It is in this worker's model and not in theirs, so it is
/// saved and carried (kUntoldGradients), and told by the next group; at the end finish_mail() puts
/// it into the average.
class GradientGossip : public GossipWorker {
 public:
  explicit GradientGossip(const StrategyContext& context)
      : GossipWorker(context, "all"), mail_(mail_options(gossip::Topology::all)) {
    make_boxes(gossip::Topology::all, mail_.message_bytes());
    if (corrects_momentum(context.options, context.optimizer_options)) {
      momentum_ = worker_momentum(context.optimizer_options);
      model_.use(optimizer::make_optimizer(optimizer::without_momentum(context.optimizer_options)));
    }
    if (const auto untold = untold_in(context.start)) {
      mail_.start_from(*untold, who_begins_with_own_model());
      apply_missing(*untold, models_averaged(context.start->own));
    }
  }

  /// What others have sent is in no one's model but theirs: it must not be lost with the boxes.
  void save_state(tensor::TrainingState& state) override {
    take_arrived();
    if (pieces_.count > 0) apply_sum(0);
    GossipWorker::save_state(state);
  }

 protected:
  void take_turn(double lr, double clip) override {
    PhaseSpan span(context_.phases, Phase::communication);
    const auto gradients = model_.gradients();
    collective::multiply(gradients, clip);
    if (momentum_.factor > 0) apply_own_momentum();
    mail_.send(*boxes_, gradients, lr);
    pieces_ = {.count = 1, .rates = lr};
    pieces_ += mail_.collect(*boxes_, gradients);
    span.next(Phase::optimizer);
    apply_sum(lr);
  }

  Arrivals arrivals() const override { return {.left_out = mail_.left_out()}; }

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
    std::array<double, 2> pieces = {};  // That were not told: how many, and their rates.
    if (mail_.has_leftovers()) {
      const gossip::Pieces own = mail_.leftover_pieces();
      pieces = {own.count, own.rates};
    }
    sums_.sum(pieces);
    if (pieces[0] == 0) return;
    const double rate = pieces[1] / pieces[0];
    std::vector<float> untold(model_.gradients().size());
    std::array<double, 1> of_pieces = {mail_.add_leftovers(untold).count};
    sums_.mean(untold);
    sums_.sum(of_pieces);
    before_rest_ = model_.past();
    std::ranges::copy(untold, model_.gradients().begin());
    const double count = of_pieces[0] / sums_.world();
    pieces_ = {.count = count, .rates = count * rate};
    apply_sum(rate);
  }

  void end_mail(bool averaged) override {
    if (!before_rest_) return;
    if (averaged) {
      mail_.forget_leftovers();
    } else {
      model_.go_back(*before_rest_);
    }
    before_rest_.reset();
  }

  tensor::OwnMemory own_memory() const override {
    gossip::GradientMail::Leftovers untold = mail_.mean_leftovers();
    if (untold.gradients.empty()) return {};
    return {.meaning = std::string(kUntoldGradients),
            .floats = {std::move(untold.gradients)},
            .doubles = {untold.pieces, untold.rate}};
  }

 private:
  /// Nothing where there is none, or it cannot be of this job.
  std::optional<gossip::GradientMail::Leftovers> untold_in(const tensor::TrainingState* start) {
    const tensor::OwnMemory* own = tensor::own_of(start, kUntoldGradients);
    if (own == nullptr || own->floats.size() != 1 || own->doubles.size() != 2) return std::nullopt;
    const double pieces = own->doubles[0], rate = own->doubles[1];
    const double all = static_cast<double>(context_.steps) * parts();
    const bool can_be = own->floats[0].size() == model_.gradients().size() && pieces >= 0 &&
                        pieces <= all && std::isfinite(rate);
    if (!can_be) return std::nullopt;
    return gossip::GradientMail::Leftovers{
        .gradients = own->floats[0], .pieces = pieces, .rate = rate};
  }

  /// How many workers' models the one this worker begins with is the mean of (dealt_state.h).
  static double models_averaged(const tensor::OwnMemory& own) {
    constexpr std::int64_t kMostWorkers = 4096;
    const bool says_it =
        own.numbers.size() == 1 && own.numbers[0] >= 1 && own.numbers[0] <= kMostWorkers;
    return says_it ? static_cast<double>(own.numbers[0]) : 1;
  }

  /// What this worker has not told the others is all in its own model, but in a mean of `models`
  /// only that part of it.
  void apply_missing(const gossip::GradientMail::Leftovers& untold, double models) {
    if (models <= 1) return;
    const double missing = (models - 1) / models;
    std::ranges::copy(untold.gradients, model_.gradients().begin());
    collective::multiply(model_.gradients(), missing);
    pieces_ = {.count = missing * untold.pieces, .rates = missing * untold.pieces * untold.rate};
    apply_sum(untold.rate);
  }

  // Those who begin with this worker's model are told nothing that is in it.
  std::set<int> who_begins_with_own_model() const {
    std::set<int> copies;
    for (int rank = 0; rank < sums_.world(); ++rank) {
      if (first_model_of(rank) == context_.engine.rank()) copies.insert(rank);
    }
    return copies;
  }

  // The velocity stands where the optimizer's would, and like it is one of whole batches'
  // gradients.
  void apply_own_momentum() {
    const auto gradients = model_.gradients();
    collective::multiply(gradients, parts());
    compression::apply_momentum(momentum_, model_.slot(0), gradients);
    collective::multiply(gradients, 1 / parts());
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

  gossip::GradientMail mail_;
  compression::WorkerMomentum momentum_;       // Where it comes before the codec.
  gossip::Pieces pieces_;                      // Whose gradients are summed up.
  std::optional<OwnModel::Past> before_rest_;  // While it counts for the average only.
  bool cleared_ = false;  // The gradients' memory is used to collect what arrives late.
};

}  // namespace

std::unique_ptr<Strategy> make_gradient_gossip(const StrategyContext& context) {
  return std::make_unique<GradientGossip>(context);
}

}  // namespace cohort::strategy
