#include "train/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/fail.h"
#include "base/log.h"
#include "data/batch_loader.h"
#include "model/make_model.h"
#include "optimizer/learning_rate.h"
#include "strategy/strategy.h"
#include "tensor/step_context.h"
#include "train/chief_log.h"
#include "train/loss.h"
#include "train/save_model.h"
#include "train/step_rate.h"
#include "train/validation.h"
#include "train/worker_trace.h"

namespace cohort {
namespace {

constexpr std::int64_t kValidationChunk = 256;

class Worker {
 public:
  Worker(const WorkerRun& run, Engine& engine, Store& store)
      : run_(run),
        job_(run.job),
        engine_(engine),
        store_(store),
        slot_(run.control.slot(engine.rank())),
        optimizer_(make_optimizer(job_.train.optimizer)),
        loss_(make_loss(job_.train)),
        model_(make_model(job_.model, run.data.spec, job_.seed)),
        total_steps_(total_steps(job_.train, run.data.train->size())),
        trace_(job_.log.trace, phases_),
        strategy_(make_strategy(strategy_context())),
        pace_(strategy_->pace()),
        loader_(run.data.train, loader_options(), preparation()),
        evaluation_(run.data.validation, kValidationChunk, engine.rank(), engine.world()) {
    if (is_chief() && !run.run_dir.empty()) log_.emplace(run.run_dir, job_.log);
    log_info("rank {} of {}: {}", engine.rank(), engine.world(), strategy_->describe());
  }

  void run() {
    slot_.state.store(WorkerState::training);
    model_->train(true);
    rate_.start();
    while (next_step()) {
      const StepOutcome outcome = train_step();
      if (outcome.diverged_rank >= 0) stop_diverged(outcome.diverged_rank);
      stopped_ = outcome.stop;
      ++step_;
      after_step(outcome);
    }
    finish();
  }

  void leave() noexcept {
    if (strategy_) strategy_->close();
  }

 private:
  bool is_chief() const { return engine_.rank() == 0; }

  StrategyContext strategy_context() {
    return {.model = *model_,
            .engine = engine_,
            .store = store_,
            .optimizer = *optimizer_,
            .phases = phases_,
            .options = job_.strategy,
            .optimizer_options = job_.train.optimizer,
            .seed = job_.seed,
            .steps = total_steps_,
            .steps_per_epoch = steps_per_epoch(run_.data.train->size(), job_.train.batch),
            .servers = static_cast<int>(job_.cluster.servers),
            .timeout = std::chrono::duration_cast<Duration>(
                std::chrono::duration<double>(job_.cluster.timeout_seconds)),
            .cores = run_.cores};
  }

  BatchOptions loader_options() const {
    return {.seed = job_.seed,
            .batch = job_.train.batch,
            .rank = engine_.rank(),
            .world = engine_.world(),
            .accumulate = job_.train.accumulate,
            .start = {}};
  }

  // Whoever is handed its work does not know it before it asks.
  BatchLoader::Preparation preparation() const {
    return pace_.hands_out_work ? BatchLoader::Preparation::in_next
                                : BatchLoader::Preparation::automatic;
  }

  // Makes step_ the step to do next. False when there is nothing left to do.
  bool next_step() {
    if (stopped_) return false;
    if (!pace_.hands_out_work) return step_ < total_steps_;
    const std::optional<Claim> claim = strategy_->next_work();
    if (!claim) return false;
    loader_.seek(*claim);
    step_ = claim->step;
    return true;
  }

  StepOutcome train_step() {
    trace_.set_step(step_ + 1);
    own_rows_ = 0;
    strategy_->space().begin_step();
    Vote vote{.loss = 0, .stop = run_.control.stop_requested()};
    for (bool last = false; !last;) {
      PhaseSpan span(phases_, Phase::data);
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
    if (!pace_.lockstep && !std::isfinite(vote.loss)) return {.diverged_rank = engine_.rank()};
    StepOutcome outcome = strategy_->finish_step({.lr = current_lr(),
                                                  .step = step_,
                                                  .clip_norm = job_.train.clip_norm,
                                                  .want_norm = is_logged(step_ + 1)});
    if (!pace_.lockstep && own_rows_ > 0) {
      outcome.loss *= static_cast<double>(place_.global_rows) / static_cast<double>(own_rows_);
    }
    return outcome;
  }

  // The share this worker's rows have in the mean loss of the global batch. Undefined where there
  // are no rows and nothing else to do.
  torch::Tensor weighted_loss(const LoadedBatch& loaded) {
    StepContext& context = step_context();
    context.seed = job_.seed;
    context.step = step_;
    context.first_row = loaded.first_row;
    context.sum_over_workers = nullptr;
    if (engine_.world() > 1 && pace_.lockstep) {
      context.sum_over_workers = [this](std::span<float> values) {
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
  torch::Tensor loss_of_no_rows(const LoadedBatch& loaded) {
    if (job_.model.make || !job_.model.torchscript.empty()) return {};
    return model_->forward(loaded.batch.input).sum() * 0;
  }

  double current_lr() const {
    return learning_rate(job_.train.schedule, job_.train.optimizer.lr, step_, total_steps_,
                         engine_.world());
  }

  // Not every worker takes part in every step, so it is those steps that pass a multiple.
  bool is_logged(std::int64_t steps_done) const {
    const std::int64_t every = std::max<std::int64_t>(job_.log.every_steps, 1);
    if (logged_step_ == steps_done) return false;
    return logged_step_ == 0 || steps_done / every != logged_step_ / every ||
           steps_done == total_steps_;
  }

  double epochs_done() const {
    return static_cast<double>(place_.after.epoch) +
           static_cast<double>(place_.after.offset) / static_cast<double>(run_.data.train->size());
  }

  void after_step(const StepOutcome& outcome) {
    samples_ += own_rows_;
    ++own_steps_;
    rate_.step_done(pace_.lockstep ? place_.global_rows : own_rows_);
    slot_.step.store(step_, std::memory_order_relaxed);
    slot_.epoch.store(epochs_done(), std::memory_order_relaxed);
    slot_.loss.store(outcome.loss, std::memory_order_relaxed);
    if (is_logged(step_)) log_step(outcome);
    validate_after_epoch(outcome.stop);
    if (place_.last_of_epoch && job_.log.histograms && log_) {
      log_->histograms(strategy_->space(), step_);
    }
  }

  // Who asked to stop does not want to wait for a validation.
  void validate_after_epoch(bool stop) {
    const std::int64_t epochs = step_ / steps_per_epoch(run_.data.train->size(), job_.train.batch);
    if (epochs == seen_epochs_) return;
    seen_epochs_ = epochs;
    if (job_.train.validate != "epoch" || stop || step_ == total_steps_) return;
    if (pace_.lockstep) {
      run_validation(evaluation_, [this](auto sums) { strategy_->sum_over_workers(sums); });
    } else if (is_chief()) {
      // The others train on meanwhile, so the chief looks at all of the set alone.
      EvaluationBatches all(run_.data.validation, kValidationChunk, 0, 1);
      run_validation(all, [](std::span<float>) {});
    }
  }

  void log_step(const StepOutcome& outcome) {
    const double wait = phases_.seconds(Phase::wait);
    const double busy = phases_.seconds(Phase::communication) + wait;
    const RateWindow window = rate_.take_window();
    const std::int64_t steps = own_steps_ - logged_own_steps_;
    // The first window is that of the first step, which touches memory for the first time.
    if (logged_step_ > 0) {
      slot_.step_seconds.store((window.seconds - (wait - logged_wait_)) /
                               static_cast<double>(steps));
    }
    slot_.own_samples_per_second.store(own_rate(window.samples_per_second));
    slot_.samples_per_second.store(rate_of_all(window.samples_per_second));
    slot_.staleness.store(outcome.staleness.value_or(-1));
    if (log_) {
      log_->step(
          {.step = step_,
           .epoch = epochs_done(),
           .loss = outcome.loss,
           .lr = learning_rate(job_.train.schedule, job_.train.optimizer.lr, step_ - 1,
                               total_steps_, engine_.world()),
           .samples_per_second = slot_.samples_per_second.load(),
           .gradient_norm = outcome.gradient_norm,
           .communication_share = window.seconds > 0 ? (busy - logged_busy_) / window.seconds : 0,
           .seconds = rate_.seconds(),
           .bytes_sent = strategy_->traffic().sent,
           .staleness = outcome.staleness,
           .consensus_distance = outcome.consensus_distance});
    }
    logged_busy_ = busy;
    logged_wait_ = wait;
    logged_own_steps_ = own_steps_;
    logged_step_ = step_;
  }

  double own_rate(double rate) const {
    return pace_.lockstep ? rate / static_cast<double>(engine_.world()) : rate;
  }

  // Workers of other hosts cannot be seen from here; they count like the ones that can.
  double rate_of_all(double rate) const {
    if (pace_.lockstep) return rate;
    double sum = 0;
    int seen = 0;
    for (const WorkerSlot& slot : run_.control.slots()) {
      const double own = slot.own_samples_per_second.load(std::memory_order_relaxed);
      sum += own;
      seen += own > 0 ? 1 : 0;
    }
    return seen == 0 ? rate : sum / seen * engine_.world();
  }

  void run_validation(EvaluationBatches& batches, const SumOverWorkers& sum) {
    const StepRate::Pause pause(rate_);
    slot_.state.store(WorkerState::validating);
    const ValidationResult result = validate(*model_, batches, loss_, sum);
    slot_.state.store(WorkerState::training);
    slot_.result.has_validation = true;
    slot_.result.has_accuracy = run_.data.spec.classes;
    slot_.result.validation_loss = result.loss;
    slot_.result.accuracy = result.accuracy;
    if (log_) {
      log_->validation({.step = step_,
                        .epoch = epochs_done(),
                        .loss = result.loss,
                        .accuracy = result.accuracy,
                        .has_accuracy = run_.data.spec.classes});
    }
  }

  // In lockstep all workers come here in the same step, before any of them has applied it.
  // Otherwise only the worker whose loss it is, which has not passed it on.
  [[noreturn]] void stop_diverged(int rank) {
    const bool saves = is_chief() && !run_.run_dir.empty();
    const bool saved = saves && save();
    fill_result();
    if (pace_.lockstep) {
      // Nobody fails before the chief has saved, or it might be ended with the others too early.
      float done = 1;
      strategy_->sum_over_workers({&done, 1});
    }
    throw Error(
        ErrorCode::diverged,
        fmt::format("the loss of step {} is not a finite number on rank {}; {}", step_ + 1, rank,
                    !saves  ? "stopped before the update"
                    : saved ? "the parameters before that step are in model.safetensors"
                            : "the parameters before that step are not finite either"))
        .about_rank(rank);
  }

  bool save() {
    return save_model(run_.run_dir / "model.safetensors", *model_,
                      {{"step", std::to_string(step_)}, {"job", job_.name}});
  }

  // Workers that do not go in step may differ in whether they were stopped or had done all.
  bool anybody_stopped() {
    if (pace_.lockstep) return stopped_;
    float stopped = stopped_ ? 1 : 0;
    strategy_->sum_over_workers({&stopped, 1});
    return stopped > 0;
  }

  void finish() {
    wait_in_steps_ = phases_.seconds(Phase::wait);
    strategy_->meet();
    const bool early = anybody_stopped();
    if (!pace_.lockstep && !early) step_ = total_steps_;
    if (!early && job_.train.validate != "never") {
      run_validation(evaluation_, [this](auto sums) { strategy_->sum_over_workers(sums); });
    }
    if (is_chief() && !run_.run_dir.empty()) save();
    if (log_) log_->close();
    trace_.write(run_.run_dir, engine_.rank());
    fill_result();
    strategy_->close();
    if (stopped_) log_info("rank {} stopped after step {} as asked", engine_.rank(), step_);
    slot_.state.store(WorkerState::done);
  }

  void fill_result() {
    WorkerResult& result = slot_.result;
    const Traffic traffic = strategy_->traffic();
    result.steps = step_;
    result.samples = samples_;
    result.epochs = step_ > 0 ? epochs_done() : 0;
    result.samples_per_second = own_rate(rate_.steady());
    result.own_steps = own_steps_;
    if (own_steps_ > 0) {
      result.step_seconds = (rate_.seconds() - wait_in_steps_) / static_cast<double>(own_steps_);
    }
    result.bytes_sent = traffic.sent;
    result.bytes_received = traffic.received;
    for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
      result.phase_seconds[i] = phases_.seconds(static_cast<Phase>(i));
    }
    put_text(result.engine, engine_.name());
    put_text(result.strategy, strategy_->describe());
  }

  const WorkerRun& run_;
  const Job& job_;
  Engine& engine_;
  Store& store_;
  WorkerSlot& slot_;
  std::unique_ptr<Optimizer> optimizer_;
  LossFunction loss_;
  std::unique_ptr<Model> model_;
  std::int64_t total_steps_;
  PhaseClock phases_;
  WorkerTrace trace_;
  std::unique_ptr<Strategy> strategy_;
  Pace pace_;
  BatchLoader loader_;
  EvaluationBatches evaluation_;
  std::optional<ChiefLog> log_;
  StepRate rate_;

  std::int64_t step_ = 0;  // Steps done, or within a step the number of this one.
  bool stopped_ = false;
  std::int64_t own_steps_ = 0;
  std::int64_t own_rows_ = 0;  // Of this step.
  std::int64_t samples_ = 0;
  std::int64_t seen_epochs_ = 0;
  std::int64_t logged_step_ = 0;
  std::int64_t logged_own_steps_ = 0;
  double logged_busy_ = 0;
  double logged_wait_ = 0;
  double wait_in_steps_ = 0;
  BatchPlace place_;
};

}  // namespace

std::int64_t total_steps(const TrainOptions& train, std::int64_t samples) {
  return train.steps > 0 ? train.steps : train.epochs * steps_per_epoch(samples, train.batch);
}

void run_worker(const WorkerRun& run, Engine& engine, Store& store,
                const std::function<void()>& on_failure) {
  std::optional<Worker> worker;
  try {
    worker.emplace(run, engine, store);
    worker->run();
  } catch (...) {
    on_failure();
    if (worker) worker->leave();
    throw;
  }
}

}  // namespace cohort
