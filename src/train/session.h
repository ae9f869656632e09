#pragma once

#include <memory>
#include <optional>

#include "launch/seat.h"
#include "train/loop/replica_stepper.h"
#include "train/loop/training_loop.h"
#include "train/worker_life.h"

namespace cohort::training {

/// One worker's training within one group of workers: makes model, strategy and stepper, and runs
/// the loop. When a peer is lost its calls throw; what was learned can then still be carried over
/// to the next group (carry), and the others be told (leave). It is never used in another group.
///
/// It is the only place that knows which Stepper a job has. It uses the group's engine and store,
/// which outlive it, as does `life`. For the worker's thread.
class Session {
 public:
  /// `start` is what this worker brings along; null where it has nothing. All workers of the group
  /// make theirs together and go on from the same model. Throws where a peer is lost.
  Session(WorkerLife& life, const cluster::View& view, launch::Seat::Group& group,
          const tensor::TrainingState* start);

  using End = TrainingLoop::End;

  /// See TrainingLoop::run.
  End run();

  std::int64_t steps_done() const { return loop_->steps_done(); }

  /// See StateKeeper.
  bool all_carry() const { return strategy_->all_carry(); }
  void carry(tensor::TrainingState& state);

  /// Tells the others that this worker is not with them any more.
  void leave() noexcept;

 private:
  std::unique_ptr<strategy::Strategy> make_strategy_with_all(const launch::Seat::Group& group,
                                                             const tensor::TrainingState* start);
  void come_together(const launch::Seat::Group& group);
  strategy::StrategyContext strategy_context(const launch::Seat::Group& group,
                                             const tensor::TrainingState* start);

  WorkerLife& life_;
  cluster::View view_;
  std::unique_ptr<optimizer::Optimizer> optimizer_;  // Each is used by those after it.
  std::unique_ptr<Model> model_;
  std::unique_ptr<strategy::Strategy> strategy_;
  ReplicaStepper stepper_;
  std::optional<TrainingLoop> loop_;
  bool left_ = false;  // The others know that this worker is not with them any more.
};

}  // namespace cohort::training
