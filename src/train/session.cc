#include "train/session.h"

#include <new>
#include <utility>

#include "base/failpoint.h"
#include "base/log.h"
#include "data/sampler.h"
#include "model/make_model.h"
#include "train/state/apart_tensors.h"

namespace cohort::training {

// All workers of a group make theirs at the same time, and in the same order: model, then strategy
// (which meets the others), then stepper and loop. What throws in here ends this group and not the
// worker, which comes to the next with the state it still has.
Session::Session(WorkerLife& life, const cluster::View& view, launch::Seat::Group& group,
                 const tensor::TrainingState* start)
    : life_(life),
      view_(view),
      optimizer_(optimizer::make_optimizer(life.run.job.train.optimizer)),
      model_(model::make_model(life.run.job.model, life.run.data.spec, life.run.job.seed)),
      strategy_(make_strategy_with_all(group, start)),
      stepper_({.job = life.run.job,
                .data = life.run.data,
                .phases = life.phases,
                .rank = group.engine->rank(),
                .world = view.world(),
                .first_step = strategy_->first_step()},
               *model_, *strategy_) {
  share_apart(*model_, *strategy_, start, group.engine->rank() == 0);
  // A step whose push got no answer was pushed again by the strategy; others are made again.
  const bool pushed_again = start != nullptr && !start->unanswered.empty();
  if (pushed_again && life_.rows_under_way > 0) life_.count_rows();
  life_.rows_under_way = 0;
  loop_.emplace(LoopContext{.life = life_,
                            .view = view_,
                            .engine = group.engine->name(),
                            .model = *model_,
                            .strategy = *strategy_,
                            .stepper = stepper_});
  log_info("rank {} of {}: {}", group.engine->rank(), view_.world(), strategy_->report().words);
}

std::unique_ptr<strategy::Strategy> Session::make_strategy_with_all(
    const launch::Seat::Group& group, const tensor::TrainingState* start) {
  failpoint("worker.rendezvous");
  if (view_.world() > 1) come_together(group);
  return strategy::make_strategy(strategy_context(group, start));
}

// To make a model, or to read it, may take long, and longer for one than for another. So all wait
// here until everybody has done so; from here on nobody has reason to be late. They wait in the
// store, where the launcher can end it when one of them is lost: then they have much time.
// Elsewhere being late is the only sign of a loss.
void Session::come_together(const launch::Seat::Group& group) {
  std::optional<Timeout::Longer> longer;
  if (group.watched) longer.emplace(life_.timeout, kLongestWork);
  if (group.store->add("models", 1) == view_.world()) group.store->set("models/all", "made");
  group.store->get("models/all", life_.timeout.deadline());
}

strategy::StrategyContext Session::strategy_context(const launch::Seat::Group& group,
                                                    const tensor::TrainingState* start) {
  const Job& job = life_.run.job;
  return {.model = *model_,
          .engine = *group.engine,
          .store = *group.store,
          .optimizer = *optimizer_,
          .phases = life_.phases,
          .activity = &life_.card.activity,
          .options = job.strategy,
          .optimizer_options = job.train.optimizer,
          .start = start,
          .seed = job.seed,
          .steps = life_.total_steps,
          .parts = job.cluster.workers,
          .generation = view_.generation,
          .steps_per_epoch = data::steps_per_epoch(life_.run.data.train->size(), job.train.batch),
          .samples = (job.train.batch + view_.world() - 1) / view_.world(),
          .servers = static_cast<int>(job.cluster.servers),
          .timeout = life_.timeout,
          .cores = life_.run.cores};
}

Session::End Session::run() {
  const End end = loop_->run();
  if (end == End::finished) leave();
  return end;
}

void Session::carry(tensor::TrainingState& state) {
  strategy_->carry_state(state);
  save_apart(*model_, state);
}

// Once. For the others this worker is gone from here on: nobody waits for it any more. Model and
// strategy live on until there is a next session, since the state may still be carried from them.
void Session::leave() noexcept {
  if (std::exchange(left_, true)) return;
  try {
    life_.traffic_before += strategy_->report().traffic;
  } catch (const std::bad_alloc&) {
    // There is no memory for its words; the bytes of this group are not counted then.
  }
  strategy_->close();
}

}  // namespace cohort::training
