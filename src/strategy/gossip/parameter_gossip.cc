#include <array>
#include <cmath>

#include "gossip/mail.h"
#include "gossip/model_age.h"
#include "strategy/gossip/gossip_worker.h"
#include "strategy/make_strategy.h"
#include "strategy/own_memory_forms.h"

namespace cohort::strategy {
namespace {

/// Parameters travel, merged by push-sum. Every model has a *weight*, of which a message takes a
/// part along, and an *age*, how many steps are in it (gossip/mail.h, gossip/model_age.h).
///
/// A turn: merge what has arrived; make a step, as long as it takes to bring this model to the age
/// it should have with this piece; send to the neighbours of the topology that are due. In the
/// average at the end a model counts by its weight and age. Only the age is a worker's own beside
/// its model, and is saved with it; weights begin anew.
class ParameterGossip : public GossipWorker {
 public:
  explicit ParameterGossip(const StrategyContext& context)
      : GossipWorker(context, context.options.topology + " neighbours"),
        mail_(mail_options(gossip::topology_named(context.options.topology)), model_.parameters()) {
    make_boxes(gossip::topology_named(context.options.topology), mail_.message_bytes());
    mail_.set_age(age_at_start(context.start));
  }

  /// What others have sent is merged: so it is not lost with the boxes.
  void save_state(tensor::TrainingState& state) override {
    take_arrived();
    GossipWorker::save_state(state);
  }

 protected:
  // What has arrived comes first: so a worker that was slow with its gradient adds it to a model
  // that is not old, and tells others of one that is not.
  void take_turn(double lr, double clip) override {
    PhaseSpan span(context_.phases, Phase::communication);
    mail_.merge(*boxes_, model_.parameters());
    span.next(Phase::optimizer);
    const double share = gossip::share_of_piece(mail_.age(), pieces_before(), context_.parts);
    model_.update(lr, parts() * clip, share);
    mail_.set_age(mail_.age() + share);
    span.next(Phase::communication);
    mail_.send(*boxes_, model_.parameters());
  }

  Arrivals arrivals() const override {
    return {.distance = mail_.distance(), .left_out = mail_.left_out()};
  }

  void take_arrived() override { mail_.merge(*boxes_, model_.parameters()); }
  void finish_mail() override {
    last_weight_ = mail_.weight();
    mail_.reset_weight();
  }
  Standing standing() const override { return {.weight = last_weight_, .age = mail_.age()}; }
  void set_age(double age) override { mail_.set_age(age); }

  tensor::OwnMemory own_memory() const override {
    return {.meaning = std::string(kModelAge), .doubles = {mail_.age()}};
  }

 private:
  /// A model that came without an age has had all the pieces that are done. A worker without any
  /// has rank 0's. All call it together.
  double age_at_start(const tensor::TrainingState* start) {
    double own = static_cast<double>(pieces_at_start()) / parts();
    const tensor::OwnMemory* saved = tensor::own_of(start, kModelAge);
    if (saved != nullptr && saved->doubles.size() == 1 && std::isfinite(saved->doubles[0]) &&
        saved->doubles[0] >= 0) {
      own = saved->doubles[0];
    }
    std::array<double, 1> first = {own};
    sums_.take_first(first);
    return start != nullptr ? own : first[0];
  }

  gossip::ParameterMail mail_;
  double last_weight_ = 1;
};

}  // namespace

std::unique_ptr<Strategy> make_parameter_gossip(const StrategyContext& context) {
  return std::make_unique<ParameterGossip>(context);
}

}  // namespace cohort::strategy
