#pragma once

#include <cohort/error.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gossip/boxes/peer_boxes.h"
#include "gossip/mail_options.h"
#include "strategy/gossip/own_model.h"
#include "strategy/strategy.h"
#include "strategy/worker_sums.h"

namespace cohort {

/// What sending parameters and sending gradients have in common: pieces of work are claimed from
/// boxes that all share, nobody waits for anybody, and meet() makes one model of all.
class GossipWorker : public Strategy, private WorkSource {
 public:
  explicit GossipWorker(const StrategyContext& context);

  FlatSpace& space() override { return model_.space(); }
  StrategyReport report() const override;
  WorkSource* work() override { return this; }
  void begin_last_backward(const Vote& vote) override;
  StepOutcome finish_step(const UpdatePlan& plan) override;
  void meet() override;
  void sum_over_workers(Numbers numbers) override { sums_.sum(numbers); }
  std::int64_t first_step() const override { return first_step_; }
  bool all_carry() const override { return true; }
  bool saves_parts() const override { return true; }
  void save_state(TrainingState& state) override;
  void close() noexcept override;

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

  /// What only this worker has.
  virtual OwnMemory own_memory() const { return {}; }

  /// The gradients of a step are this worker's share of the mean over a batch; its own mean is so
  /// many times that.
  double parts() const { return static_cast<double>(context_.parts); }

  /// Whose model a worker begins with: its own, or that of the one it is a copy of; worker 0's
  /// where it has brought none along.
  int first_model_of(int rank) const { return model_of_[static_cast<std::size_t>(rank)]; }

  /// Pieces of the job handed out before the one this worker works on.
  std::int64_t pieces_before() const { return pieces_before_; }
  /// Pieces done before this group of workers began.
  std::int64_t pieces_at_start() const {
    return claims_.work.next - static_cast<std::int64_t>(claims_.work.again.size());
  }

  MailOptions mail_options(Topology topology) const;
  void make_boxes(Topology topology, std::size_t message_bytes);

  StrategyContext context_;
  WorkerSums sums_;
  OwnModel model_;
  std::unique_ptr<PeerBoxes> boxes_;

 private:
  struct PlaceInMean {
    double share;  ///< Of this worker's model.
    double age;    ///< Of the mean.
  };

  std::optional<Claim> next_work() override;
  WorkLeft agreed_work();
  WorkLeft work_of(std::span<const std::int64_t> numbers) const;
  PlaceInMean place_in_mean();
  std::optional<Error> agree(const std::string& key);
  std::optional<Error> average_models(const std::string& key);

  std::vector<int> model_of_;  // By rank: see first_model_of().
  ClaimRange claims_;
  std::int64_t first_step_;
  std::int64_t pieces_before_ = 0;
  Vote vote_;
  int meetings_ = 0;
};

}  // namespace cohort
