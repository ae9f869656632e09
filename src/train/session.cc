#include "train/session.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "kinds/strategy_table.h"
#include "model/make_model.h"
#include "optimizer/learning_rate.h"
#include "tensor/step_context.h"
#include "train/save_model.h"
#include "train/start_state.h"

namespace cohort {
namespace {

constexpr std::int64_t kValidationChunk = 256;

}  // namespace

Session::Session(WorkerLife& life, const View& view, Seat::Group& group, const TrainingState* start)
    : life_(life),
      job_(life.run.job),
      view_(view),
      engine_(*group.engine),
      store_(*group.store),
      rank_(engine_.rank()),
      optimizer_(make_optimizer(job_.train.optimizer)),
      loss_(make_loss(job_.train)),
      model_(make_model(job_.model, life.run.data.spec, job_.seed)),
      strategy_(make_strategy_with_all(group.watched, start)),
      pace_(strategy_->pace()),
      step_(strategy_->first_step()),
      loader_(life.run.data.train, loader_options(), preparation()),
      evaluation_(life.run.data.validation, kValidationChunk, rank_, view.world()) {
  // A step whose push got no answer was pushed again by the strategy; others are made again.
  const bool pushed_again = start != nullptr && !start->unanswered.empty();
  if (pushed_again && life_.rows_under_way > 0) count_rows();
  life_.rows_under_way = 0;
  place_.after = loader_options().start;
  life_.slot.step.store(step_);
  if (view_.epoch == 1 && is_chief()) life_.run.control.set_first_step(step_);
  agree_on_validation();
  take_or_hand_over_duty();
  const std::int64_t logged = life_.run.control.logged_step();
  step_log_.emplace(life_, pace_, view_,
                    pace_.hands_out_work && logged >= 0 ? logged : std::max(step_, logged),
                    [this] { return bytes_sent(); });
  log_info("rank {} of {}: {}", rank_, view_.world(), strategy_->describe());
}

std::unique_ptr<Strategy> Session::make_strategy_with_all(bool watched,
                                                          const TrainingState* start) {
  failpoint("worker.rendezvous");
  if (view_.world() > 1) come_together(watched);
  return make_strategy(strategy_context(start));
}

// To make a model, or to read it, may take long, and longer for one than for another. So all wait
// here until everybody has done so; from here on nobody has reason to be late. They wait in the
// store, where the launcher can end it when one of them is lost: then they have much time.
// Elsewhere being late is the only sign of a loss.
void Session::come_together(bool watched) {
  std::optional<Timeout::Longer> longer;
  if (watched) longer.emplace(life_.timeout, kLongestWork);
  if (store_.add("models", 1) == view_.world()) store_.set("models/all", "made");
  store_.get("models/all", life_.timeout.deadline());
}

StrategyContext Session::strategy_context(const TrainingState* start) {
  return {.model = *model_,
          .engine = engine_,
          .store = store_,
          .optimizer = *optimizer_,
          .phases = life_.phases,
          .activity = &life_.slot.activity,
          .options = job_.strategy,
          .optimizer_options = job_.train.optimizer,
          .start = start,
          .seed = job_.seed,
          .steps = life_.total_steps,
          .parts = job_.cluster.workers,
          .epoch = view_.epoch,
          .steps_per_epoch = steps_per_epoch(life_.run.data.train->size(), job_.train.batch),
          .servers = static_cast<int>(job_.cluster.servers),
          .timeout = life_.timeout,
          .cores = life_.run.cores};
}

// Handed out are as many parts of a batch as there were workers at first, to however many there
// are now: which part is to be read, the work says.
BatchOptions Session::loader_options() const {
  const bool handed_out = pace_.hands_out_work;
  return {.seed = job_.seed,
          .batch = job_.train.batch,
          .rank = handed_out ? 0 : rank_,
          .world = handed_out ? static_cast<int>(job_.cluster.workers) : view_.world(),
          .accumulate = job_.train.accumulate,
          .start = cursor_after(step_, life_.run.data.train->size(), job_.train.batch)};
}

// Whoever is handed its work does not know it before it asks.
BatchLoader::Preparation Session::preparation() const {
  return pace_.hands_out_work ? BatchLoader::Preparation::in_next
                              : BatchLoader::Preparation::automatic;
}

// A newcomer does not know what was validated, and of those who were there when a group broke some
// may have come through the validation and others not. All must do the same.
void Session::agree_on_validation() {
  const std::int64_t epochs = place_.after.epoch;
  bool done = view_.epoch == 1 || life_.validated_epochs >= epochs;
  if (view_.epoch > 1 && pace_.lockstep) {
    done = strategy_->any_worker(done && life_.own_steps > 0);
  } else if (life_.own_steps == 0) {
    done = true;
  }
  life_.validated_epochs = done ? epochs : epochs - 1;
}

void Session::take_or_hand_over_duty() {
  ControlBlock& control = life_.run.control;
  if (!writes_run_folder()) {
    life_.log.reset();
    if (life_.checkpoints) life_.checkpoints->hand_over();
    return;
  }
  control.set_chief(life_.worker);
  // Where steps are handed out they are not done in order: none of those logged is taken back, and
  // the workers still have what the last chief did not log.
  const std::int64_t logged = control.logged_step();
  const std::int64_t goes_on_after = pace_.hands_out_work && logged >= 0 ? logged : step_;
  if (logged > goes_on_after) life_.log.reset();
  if (!life_.log) {
    const bool goes_on = view_.epoch > 1 || step_ > 0;
    life_.log.emplace(life_.run.run_dir, job_.log,
                      goes_on ? std::optional(goes_on_after) : std::nullopt);
  }
  control.set_logged_step(goes_on_after);
  if (!life_.checkpoints) life_.checkpoints.emplace(life_.run.run_dir, job_);
  life_.checkpoints->take_over();
}

Session::End Session::run() {
  life_.slot.state.store(WorkerState::training);
  model_->train(true);
  life_.rate.start();
  stopped_ = view_.closing;
  failpoint("worker.joined");
  while (next_step()) {
    failpoint("worker.step");
    const StepOutcome outcome = train_step();
    if (outcome.diverged_rank >= 0) stop_diverged(outcome.diverged_rank);
    stopped_ = outcome.stop;
    next_ = outcome.next;
    ++step_;
    after_step(outcome);
  }
  failpoint("worker.shutdown");
  meet();
  const bool paused = anybody_stopped();
  step_log_->write_rest(!paused || ends());
  if (paused) {
    save_before_end();
    return End::paused;
  }
  finish();
  return End::finished;
}

void Session::meet() {
  std::optional<Timeout::Longer> longer;
  const bool chief_may_validate = !pace_.lockstep && job_.train.validate == "epoch";
  if (chief_may_validate) longer.emplace(life_.timeout, kLongestWork);
  strategy_->meet();
}

void Session::carry(TrainingState& state) {
  strategy_->carry_state(state);
}

void Session::leave() noexcept {
  if (std::exchange(left_, true)) return;
  const Traffic traffic = strategy_->traffic();
  life_.traffic_before.sent += traffic.sent;
  life_.traffic_before.received += traffic.received;
  strategy_->close();
}

// Makes step_ the step to do next. False when there is nothing left to do.
bool Session::next_step() {
  // A step of one's own does not notice what happened to the others.
  if (life_.run.control.is_broken(view_.epoch) && way_of(job_.strategy).traits.loss_stops_all) {
    fail(ErrorCode::peer_lost, "a task of group {} was lost", view_.epoch);
  }
  validate_finished_epoch();
  if (stopped_) return false;
  if (!pace_.hands_out_work) return step_ < life_.total_steps && !stops_alone();
  std::optional<Claim> claim = std::exchange(next_, std::nullopt);
  if (!claim) {
    step_log_->ask_for_work();
    claim = strategy_->next_work();
  }
  if (!claim) return false;
  loader_.seek(*claim);
  step_ = claim->step;
  part_ = claim->part;
  step_log_->begin_piece(step_ + 1);
  return true;
}

// In lockstep a stop is agreed upon with the votes of each step; who is handed its work just stops.
bool Session::stops_alone() {
  if (pace_.lockstep) return false;
  stopped_ = !life_.run.control.may_head_for(life_.slot, step_ + 1);
  return stopped_;
}

StepOutcome Session::train_step() {
  step_began_ = Clock::now();
  life_.trace.set_step(step_ + 1);
  own_rows_ = 0;
  wait_before_ = life_.phases.seconds(Phase::wait);
  strategy_->space().begin_step();
  const ControlBlock& control = life_.run.control;
  Vote vote{.loss = 0, .stop = control.stop_requested() || control.pause_requested(view_.epoch)};
  for (bool last = false; !last;) {
    PhaseSpan span(life_.phases, Phase::data);
    const LoadedBatch loaded = loader_.next();
    last = loaded.last_of_step;
    place_ = loaded;
    own_rows_ += loaded.batch.input.size(0);
    span.next(Phase::forward);
    const torch::Tensor loss = weighted_loss(loaded);
    if (loss.defined()) vote.loss += loss.item<double>();
    if (last) strategy_->begin_last_backward(vote);
    span.next(Phase::backward);
    if (loss.defined()) loss.backward();
  }
  if (!pace_.lockstep && !std::isfinite(vote.loss)) return {.diverged_rank = rank_};
  life_.rows_under_way = own_rows_;
  const bool want_norm = step_log_->is_due(step_ + 1);
  // Others may have to wait for whoever has a piece and does something else first.
  const bool has_other_duty = (is_chief() && validates_at(step_ + 1)) ||
                              (writes_run_folder() && life_.checkpoints->due(step_ + 1));
  const bool wants_next = pace_.hands_out_work && !vote.stop && !has_other_duty;
  if (wants_next) step_log_->hand_in(step_ + 1);
  StepOutcome outcome = strategy_->finish_step({.lr = learning_rate_of(step_),
                                                .step = step_,
                                                .clip_norm = job_.train.clip_norm,
                                                .want_norm = want_norm,
                                                .wants_next = wants_next});
  if (!pace_.lockstep && own_rows_ > 0) {
    outcome.loss *= static_cast<double>(place_.global_rows) / static_cast<double>(own_rows_);
  }
  return outcome;
}

// The share this worker's rows have in the mean loss of the global batch. Undefined where there
// are no rows and nothing else to do.
torch::Tensor Session::weighted_loss(const LoadedBatch& loaded) {
  StepContext& context = step_context();
  context.seed = job_.seed;
  context.step = step_;
  context.first_row = loaded.first_row;
  context.gradients_travel = pace_.gradients_travel;
  context.sum_over_workers = nullptr;
  if (view_.world() > 1 && pace_.lockstep) {
    context.sum_over_workers = [this](std::span<double> values) {
      strategy_->sum_over_workers(values);
    };
  }
  const std::int64_t rows = loaded.batch.input.size(0);
  if (rows == 0) return loss_of_no_rows(loaded);
  const double weight = static_cast<double>(rows) / static_cast<double>(loaded.global_rows);
  const torch::Tensor loss = loss_(model_->forward(loaded.batch.input), loaded.batch.target);
  return weight == 1 ? loss : loss * weight;
}

// Cohort's own layers may talk to the other workers in forward and backward, so all of them have
// to run also without rows. A program's own module need not be able to.
torch::Tensor Session::loss_of_no_rows(const LoadedBatch& loaded) {
  if (job_.model.make || !job_.model.torchscript.empty()) return {};
  return model_->forward(loaded.batch.input).sum() * 0;
}

double Session::learning_rate_of(std::int64_t step) const {
  const OptimizerOptions& optimizer = job_.train.optimizer;
  return decay_of_rate(optimizer, step) *
         learning_rate(job_.train.schedule, optimizer.lr, step, life_.total_steps, view_.world());
}

double Session::epochs_done() const {
  const auto samples = static_cast<double>(life_.run.data.train->size());
  return static_cast<double>(place_.after.epoch) +
         static_cast<double>(place_.after.offset) / samples;
}

/// Once what the worker has learned from them is applied, or will be.
void Session::count_rows() {
  const std::int64_t rows = std::exchange(life_.rows_under_way, 0);
  life_.samples += rows;
  life_.slot.samples.fetch_add(rows, std::memory_order_relaxed);
  ++life_.own_steps;
}

void Session::after_step(const StepOutcome& outcome) {
  count_rows();
  life_.wait_in_steps += life_.phases.seconds(Phase::wait) - wait_before_;
  life_.rate.step_done(pace_.lockstep ? place_.global_rows : own_rows_);
  life_.slot.longest_step.store(
      std::max(life_.slot.longest_step.load(std::memory_order_relaxed), seconds_since(step_began_)),
      std::memory_order_relaxed);
  life_.slot.step.store(step_, std::memory_order_relaxed);
  life_.slot.epoch.store(epochs_done(), std::memory_order_relaxed);
  life_.slot.loss.store(outcome.loss, std::memory_order_relaxed);
  last_loss_ = outcome.loss;
  step_log_->step_done({.steps_done = step_,
                        .part = part_,
                        .rows = own_rows_,
                        .global_rows = place_.global_rows,
                        .outcome = outcome});
  if (place_.last_of_epoch && job_.log.histograms && life_.log) {
    life_.log->histograms(strategy_->space(), step_);
  }
  if (!outcome.stop) save_checkpoint_if_due();
}

void Session::save_checkpoint_if_due() {
  if (!writes_run_folder() || !life_.checkpoints->due(step_)) return;
  const PhaseSpan span(life_.phases, Phase::checkpoint);
  life_.checkpoints->save(checkpoint_place(), *model_,
                          [this](TrainingState& state) { strategy_->save_state(state); });
}

CheckpointPlace Session::checkpoint_place() const {
  return {.samples = life_.run.data.train->size(), .workers = view_.world()};
}

std::int64_t Session::epochs_at(std::int64_t step) const {
  return step / steps_per_epoch(life_.run.data.train->size(), job_.train.batch);
}

bool Session::validates_at(std::int64_t step) const {
  return epochs_at(step) > life_.validated_epochs && job_.train.validate == "epoch" &&
         step < life_.total_steps;
}

// Looked at before a step, not after one, so that it is not left out where the group that did the
// step broke. Who asked to stop does not want to wait for a validation.
void Session::validate_finished_epoch() {
  const std::int64_t epochs = epochs_at(step_);
  if (epochs <= life_.validated_epochs || stopped_) return;
  const bool wanted = validates_at(step_);
  if (wanted && pace_.lockstep) {
    run_validation(evaluation_, [this](auto sums) { strategy_->sum_over_workers(sums); });
  } else if (wanted && is_chief()) {
    // The others train on meanwhile, so the chief looks at all of the set alone.
    EvaluationBatches all(life_.run.data.validation, kValidationChunk, 0, 1);
    run_validation(all, [](std::span<double>) {});
  }
  life_.validated_epochs = epochs;
}

void Session::run_validation(EvaluationBatches& batches, const SumOverWorkers& sum) {
  const StepRate::Pause pause(life_.rate);
  WorkerSlot& slot = life_.slot;
  slot.state.store(WorkerState::validating);
  const ValidationResult result = validate(*model_, batches, loss_, sum);
  slot.state.store(WorkerState::training);
  slot.result.has_validation = true;
  slot.result.has_accuracy = life_.run.data.spec.classes;
  slot.result.validation_loss = result.loss;
  slot.result.accuracy = result.accuracy;
  if (life_.log) {
    life_.log->validation({.step = step_,
                           .epoch = epochs_done(),
                           .loss = result.loss,
                           .accuracy = result.accuracy,
                           .has_accuracy = life_.run.data.spec.classes});
  }
}

// In lockstep all workers come here in the same step, before any of them has applied it. Otherwise
// only the worker whose loss it is, which has not passed it on.
void Session::stop_diverged(int rank) {
  const Timeout::Longer longer(life_.timeout, kLongestWork);
  const bool saves = writes_run_folder();
  step_log_->write_rest(true);
  const bool saved = saves && save_model_file();
  fill_result();
  if (pace_.lockstep) {
    // Nobody fails before the chief has saved, or it might be ended with the others too early.
    strategy_->wait_for_workers();
  }
  throw Error(
      ErrorCode::diverged,
      fmt::format("the loss of step {} is not a finite number on rank {}; {}", step_ + 1, rank,
                  !saves  ? "stopped before the update"
                  : saved ? "the parameters before that step are in model.safetensors"
                          : "the parameters before that step are not finite either"))
      .about_rank(rank);
}

// Workers that do not go in step may differ in whether they were stopped or had done all.
bool Session::anybody_stopped() {
  if (pace_.lockstep) return stopped_ && step_ < life_.total_steps;
  return strategy_->any_worker(stopped_);
}

bool Session::save_model_file() {
  return save_model(life_.run.run_dir / "model.safetensors", *model_,
                    {{"step", std::to_string(step_)}, {"job", job_.name}});
}

bool Session::ends() const {
  return view_.closing || life_.run.control.stop_requested();
}

// The run may end here: nothing of it is lost.
void Session::save_before_end() {
  fill_result();
  if (!ends() || !writes_run_folder()) return;
  life_.slot.state.store(WorkerState::saving);
  const Working working(life_.slot.activity, BusyWith::saving);
  save_model_file();
  life_.checkpoints->save_now(checkpoint_place(), *model_,
                              [this](TrainingState& state) { strategy_->save_state(state); });
  life_.run.control.set_saved();
}

// Whoever made the last step need not be the chief, which then knows of no loss but its own: the
// mean of what all have seen last is nearest to it.
void Session::log_last_step() {
  std::array<double, 2> losses = {last_loss_.value_or(0), last_loss_ ? 1.0 : 0.0};
  strategy_->sum_over_workers(losses);
  if (losses[1] > 0) step_log_->write_last(losses[0] / losses[1]);
}

std::uint64_t Session::bytes_sent() const {
  return life_.traffic_before.sent + strategy_->traffic().sent;
}

void Session::finish() {
  if (!pace_.lockstep) {
    step_ = life_.total_steps;
    place_.after = cursor_after(step_, life_.run.data.train->size(), job_.train.batch);
  }
  if (!step_log_->knows_all_pieces()) log_last_step();
  if (job_.train.validate != "never") {
    run_validation(evaluation_, [this](auto sums) { strategy_->sum_over_workers(sums); });
  }
  // The chief may take long to save; so nobody is in a hurry.
  const Timeout::Longer longer(life_.timeout, kLongestWork);
  if (writes_run_folder()) {
    life_.slot.state.store(WorkerState::saving);
    const Working working(life_.slot.activity, BusyWith::saving);
    save_model_file();
    life_.checkpoints->finish(checkpoint_place(), *model_,
                              [this](TrainingState& state) { strategy_->save_state(state); });
  }
  // Nobody is gone before the chief has saved: should it fail in that, the others can take over.
  strategy_->wait_for_workers();
  if (life_.log) life_.log->close();
  fill_result();
  life_.slot.finished.store(true);
  leave();
}

void Session::fill_result() {
  WorkerResult& result = life_.slot.result;
  const Traffic traffic = strategy_->traffic();
  result.steps = step_;
  result.samples = life_.samples;
  result.epochs = step_ > 0 ? epochs_done() : 0;
  result.samples_per_second = step_log_->own_rate(life_.rate.steady());
  result.own_steps = life_.own_steps;
  if (life_.own_steps > 0) {
    result.step_seconds =
        (life_.rate.seconds() - life_.wait_in_steps) / static_cast<double>(life_.own_steps);
  }
  result.bytes_sent = bytes_sent();
  result.bytes_received = life_.traffic_before.received + traffic.received;
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
    result.phase_seconds[i] = life_.phases.seconds(static_cast<Phase>(i));
  }
  put_text(result.engine, engine_.name());
  put_text(result.strategy, strategy_->describe());
}

}  // namespace cohort
