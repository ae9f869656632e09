#include "train/loop/training_loop.h"

#include <array>

#include "base/fail.h"
#include "base/failpoint.h"
#include "data/sampler.h"
#include "kinds/strategy_table.h"
#include "optimizer/learning_rate.h"

namespace cohort::training {

TrainingLoop::TrainingLoop(const LoopContext& context)
    : context_(context),
      life_(context.life),
      job_(context.life.run.job),
      loss_stops_all_(kinds::way_of(job_.strategy).traits.loss_stops_all),
      step_(context.strategy.first_step()),
      duty_({life_, context_.view, context_.model}, step_),
      checkpoints_(life_, context_.view, context_.strategy, context_.model),
      books_(life_, context_.strategy, context_.engine),
      log_(life_, context_.view, step_, [this] { return books_.traffic().sent; }),
      pace_(make_pace({life_, context_.view, context_.strategy, log_})),
      validation_({life_, context_.stepper, context_.strategy, *pace_}) {
  const bool chief = context_.view.rank_of(life_.worker) == 0;
  life_.card.step.store(step_);
  if (context_.view.generation == 1 && chief) life_.run.control.set_first_step(step_);
  validation_.begin(context_.view, step_);
}

TrainingLoop::End TrainingLoop::run() {
  life_.card.state.store(launch::TaskState::training);
  life_.rate.start();
  failpoint("worker.joined");
  while (const std::optional<cluster::Claim> piece = next_piece()) {
    failpoint("worker.step");
    make_step(*piece);
  }
  failpoint("worker.shutdown");
  const std::optional<std::int64_t> all_done = pace_->meet(step_);
  checkpoints_.after_meet();
  log_.write_rest(all_done || run_ends());
  if (!all_done) {
    books_.fill_result(step_, log_);
    save_before_end();
    return End::paused;
  }
  step_ = *all_done;
  finish();
  return End::finished;
}

std::optional<cluster::Claim> TrainingLoop::next_piece() {
  // A step of one's own does not notice what happened to the others.
  const std::int64_t group = context_.view.generation;
  if (loss_stops_all_ && life_.run.control.is_broken(group)) {
    fail(ErrorCode::peer_lost, "a task of group {} was lost", group);
  }
  validation_.before_step(step_);
  const std::optional<cluster::Claim> piece = pace_->next(step_);
  if (piece) step_ = piece->step;
  return piece;
}

void TrainingLoop::make_step(const cluster::Claim& piece) {
  const launch::ControlBlock& control = life_.run.control;
  books_.begin_step(step_ + 1);
  const bool stops = control.stop_requested() || control.pause_requested(context_.view.generation);
  const StepWork work = context_.stepper.compute(
      {.piece = piece, .stop = stops, .save = checkpoints_.wants(step_ + 1)});
  if (!pace_->may_apply(work.loss)) stop_diverged("loss", *context_.view.rank_of(life_.worker));
  life_.rows_under_way = work.rows;
  strategy::StepOutcome outcome = context_.strategy.finish_step(plan_of_update(stops));
  if (outcome.diverged_rank >= 0) {
    stop_diverged(std::isfinite(outcome.loss) ? "gradient" : "loss", outcome.diverged_rank);
  }
  pace_->step_done(work, outcome);
  ++step_;
  after_step(piece, work, outcome);
}

strategy::UpdatePlan TrainingLoop::plan_of_update(bool stops) {
  const OptimizerOptions& optimizer = job_.train.optimizer;
  const std::int64_t after = step_ + 1;
  const bool has_other_duty = validation_.is_due(after) || checkpoints_.is_due(after);
  return {.lr = optimizer::decay_of_rate(optimizer, step_) *
                optimizer::learning_rate(job_.train.schedule, optimizer.lr, step_,
                                         life_.total_steps, context_.view.world()),
          .step = step_,
          .clip_norm = job_.train.clip_norm,
          .want_norm = log_.is_due(after),
          .wants_next = pace_->hand_in(after, !stops && !has_other_duty)};
}

void TrainingLoop::after_step(const cluster::Claim& piece, const StepWork& work,
                              const strategy::StepOutcome& outcome) {
  last_loss_ = outcome.loss;
  books_.step_done(step_, outcome.loss);
  log_.step_done({.steps_done = step_,
                  .part = piece.part,
                  .rows = work.rows,
                  .global_rows = work.global_rows,
                  .outcome = outcome});
  const std::int64_t epoch_steps =
      data::steps_per_epoch(life_.run.data.train->size(), job_.train.batch);
  if (step_ % epoch_steps == 0 && job_.log.histograms && life_.log) {
    life_.log->histograms(context_.strategy.space(), step_);
  }
  if (!outcome.stop) checkpoints_.after_step(step_, outcome);
}

// In lockstep all workers come here in the same step, before any of them has applied it. Otherwise
// only the worker whose loss it is, which has not passed it on.
//
// A gradient that is not finite although the loss is was found by a server, in its part of the model
// (server/shard): others may have made the step with theirs.
void TrainingLoop::stop_diverged(const std::string& what, int rank) {
  const Timeout::Longer longer(life_.timeout, kLongestWork);
  log_.write_rest(true);
  const bool saved = duty_.save_model_file(step_);
  books_.fill_result(step_, log_);
  pace_->before_failure();
  throw Error(
      ErrorCode::diverged,
      fmt::format("the {} of step {} is not a finite number on rank {}; {}", what, step_ + 1, rank,
                  !duty_.is_on() ? "stopped before the update"
                  : !saved       ? "the parameters before that step are not finite either"
                  : what == "gradient"
                      ? "the newest finite parameters are in model.safetensors"
                      : "the parameters before that step are in model.safetensors"))
      .about_rank(rank);
}

bool TrainingLoop::run_ends() const {
  return context_.view.closing || life_.run.control.stop_requested();
}

// The run may end here, before all is done: nothing of it is lost.
void TrainingLoop::save_before_end() {
  // All must find the same, where all have a part of what is saved.
  const bool joint = checkpoints_.is_joint();
  if (!(joint ? context_.strategy.any_worker(run_ends()) : run_ends())) return;
  duty_.save_last_model(step_);
  const Working working(life_.card.activity, BusyWith::saving);
  checkpoints_.save_now();
  if (duty_.is_on()) life_.run.control.set_saved();
}

void TrainingLoop::finish() {
  if (!log_.knows_all_pieces()) log_last_step();
  validation_.at_end(step_);
  // The chief may take long to save; so nobody is in a hurry.
  const Timeout::Longer longer(life_.timeout, kLongestWork);
  duty_.save_last_model(step_);
  {
    const Working working(life_.card.activity, BusyWith::saving);
    checkpoints_.finish();
  }
  // Nobody is gone before the chief has saved: should it fail in that, the others can take over.
  context_.strategy.wait_for_workers();
  if (life_.log) life_.log->close();
  books_.fill_result(step_, log_);
  life_.card.finished.store(true);
}

// Whoever made the last step need not be the chief, which then knows of no loss but its own: the
// mean of what all have seen last is nearest to it.
void TrainingLoop::log_last_step() {
  std::array<double, 2> losses = {last_loss_.value_or(0), last_loss_ ? 1.0 : 0.0};
  context_.strategy.sum_over_workers(losses);
  if (losses[1] > 0) log_.write_last(losses[0] / losses[1]);
}

}  // namespace cohort::training
