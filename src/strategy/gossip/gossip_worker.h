#pragma once

#include <cohort/error.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossip/boxes/peer_boxes.h"
#include "gossip/mail.h"
#include "os/memory.h"
#include "strategy/model_state.h"
#include "strategy/strategy.h"
#include "strategy/worker_sums.h"

namespace cohort::strategy {

/// A model of which this worker has everything for itself: parameters, gradients, optimizer slots
/// and buffers. At first it is what the worker brings along, or where it has nothing rank 0's.
class OwnModel {
 public:
  /// All workers make theirs together.
  OwnModel(const StrategyContext& context, WorkerSums& sums);

  tensor::FlatSpace& space() { return *space_; }
  std::span<float> parameters() const { return memory_.parameters; }
  std::span<float> gradients() const { return space_->memory().gradients; }
  std::span<float> buffers() const { return memory_.buffers; }
  std::span<float> slot(std::size_t number) const { return memory_.slots[number]; }

  /// From now on updates are made by this rule. It has no slots; those there are stay the caller's.
  void use(std::unique_ptr<optimizer::Optimizer> rule) { rule_ = std::move(rule); }

  /// A step of the optimizer, or that share of one, by gradients() times `gradient_scale`. Each
  /// call is one update of the optimizer, whatever its share.
  void update(double lr, double gradient_scale, double share);

  /// The model, its slots and the number of updates.
  void save(tensor::TrainingState& state) const;

  /// What updates change, as it is now, and as it then was again.
  struct Past {
    std::vector<float> floats;  ///< Parameters, then each slot.
    std::int64_t updates = 0;
  };
  Past past() const;
  void go_back(const Past& past);

 private:
  const optimizer::Optimizer& optimizer_;
  std::unique_ptr<optimizer::Optimizer> rule_;  // In its place, where there is one.
  os::PrivateMemory floats_;                    // Parameters, buffers, gradients, slots.
  ModelMemory memory_;
  std::optional<tensor::FlatSpace> space_;
  std::int64_t updates_ = 0;
};

/// A worker of a training without a centre: it has a model of its own, claims parts of batches,
/// makes its own steps on them, sends to peers and merges what has arrived from them; nobody waits
/// for anybody. What sending parameters and sending gradients have in common.
///
/// Vocabulary. A *piece* is one part of a step's batch; it is *claimed* by whoever is free and
/// *done* once it is in the claimer's model. *Mail* are the messages between peers; a *box*
/// (gossip/boxes) keeps what has arrived until its owner takes it. A *turn* is what a worker does
/// with the gradient of one piece.
///
///   next_work()      claims a piece
///   finish_step()    take_turn(): update, send, take what has arrived; then the piece is done
///   meet()           1. no more claims; come_together(): take what arrives until nobody sends any more
///                    2. finish_mail(): what was never told to others gets into the average as well
///                    3. average_models(): the sum of all models by their shares, then agree():
///                       all workers use it, or none does where one was lost before it had it
///                    4. end_mail(): what finish_mail() did counts, or is undone
///
/// A worker that dies takes its model along, stops nobody before meet(), and its last piece is
/// claimed again in the next group. Clipping looks at the gradient of the worker's own part alone.
class GossipWorker : public Strategy, private WorkSource {
 public:
  /// `receivers`: for the report, "send parameters to …".
  GossipWorker(const StrategyContext& context, std::string receivers);

  tensor::FlatSpace& space() override { return model_.space(); }
  StrategyReport report() const override;
  WorkSource* work() override { return this; }
  void begin_last_backward(const Vote& vote) override;
  StepOutcome finish_step(const UpdatePlan& plan) override;
  void meet() override;
  void sum_over_workers(collective::Numbers numbers) override { sums_.sum(numbers); }
  std::int64_t first_step() const override { return first_step_; }
  bool all_carry() const override { return true; }
  bool all_save() const override { return true; }
  void save_state(tensor::TrainingState& state) override;
  void close() noexcept override;

 protected:
  /// One step of this worker: `clip` is what its gradients have to be multiplied by.
  virtual void take_turn(double lr, double clip) = 0;
  /// What has arrived so far.
  struct Arrivals {
    std::optional<double> distance = {};  ///< See StepOutcome::consensus_distance.
    std::int64_t left_out = 0;            ///< See Traffic.
  };
  virtual Arrivals arrivals() const = 0;

  /// Between the last step and the average, as often as it takes: takes what is in the boxes.
  virtual void take_arrived() = 0;
  /// Once all have taken everything: what must be done before the average.
  virtual void finish_mail() = 0;
  /// Then, whatever comes of it: `averaged`, all have the average, and what finish_mail() did
  /// counts; otherwise there is none, and it must be undone.
  virtual void end_mail(bool /*averaged*/) {}

  /// How this worker's model counts in the average.
  struct Standing {
    double weight = 1;
    double age = 0;  ///< See gossip/model_age.h.
  };
  virtual Standing standing() const { return {}; }
  /// The model is the average now, and as old as that.
  virtual void set_age(double /*age*/) {}

  /// What only this worker has.
  virtual tensor::OwnMemory own_memory() const { return {}; }

  /// The gradients of a step are this worker's share of the mean over a batch; its own mean is so
  /// many times that.
  double parts() const { return static_cast<double>(context_.parts); }

  /// Whose model a worker begins with: its own, or that of the one it is a copy of; rank 0's
  /// where it has brought none along.
  int first_model_of(int rank) const { return model_of_[static_cast<std::size_t>(rank)]; }

  /// Pieces of the job handed out before the one this worker works on.
  std::int64_t pieces_before() const { return pieces_before_; }
  /// Pieces done before this group of workers began.
  std::int64_t pieces_at_start() const {
    return claims_.work.next - static_cast<std::int64_t>(claims_.work.again.size());
  }

  gossip::MailOptions mail_options(gossip::Topology topology) const;
  void make_boxes(gossip::Topology topology, std::size_t message_bytes);

  StrategyContext context_;
  WorkerSums sums_;
  OwnModel model_;
  std::unique_ptr<gossip::PeerBoxes> boxes_;

 private:
  /// What is agreed on before models are averaged.
  struct PlaceInMean {
    double share;  ///< Of this worker's model.
    double age;    ///< Of the mean.
  };

  std::optional<cluster::Claim> next_work() override;
  cluster::WorkLeft agreed_work();
  cluster::WorkLeft work_of(std::span<const std::int64_t> numbers) const;
  PlaceInMean place_in_mean();
  std::optional<Error> agree(const std::string& key);
  std::optional<Error> average_models(const std::string& key);

  std::string receivers_;
  std::vector<int> model_of_;  // By rank: see first_model_of().
  gossip::ClaimRange claims_;  // The same on all workers: what the group begins with.
  std::int64_t first_step_;
  std::int64_t pieces_before_ = 0;
  Vote vote_;
  int meetings_ = 0;  // So far; each has keys of its own in the store.
};

}  // namespace cohort::strategy
