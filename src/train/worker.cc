#include "train/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/fail.h"
#include "base/log.h"
#include "data/batch_loader.h"
#include "model/make_model.h"
#include "strategy/strategy.h"
#include "tensor/learning_rate.h"
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
  Worker(const WorkerRun& run, Engine& engine)
      : run_(run),
        job_(run.job),
        engine_(engine),
        slot_(run.control.slot(engine.rank())),
        optimizer_(make_optimizer(job_.train.optimizer)),
        loss_(make_loss(job_.train)),
        model_(make_model(job_.model, run.data.spec, job_.seed)),
        total_steps_(total_steps(job_.train, run.data.train->size())),
        trace_(job_.log.trace, phases_),
        strategy_(make_strategy(strategy_context())),
        loader_(run.data.train, loader_options()),
        evaluation_(run.data.validation, kValidationChunk, engine.rank(), engine.world()) {
    if (is_chief() && !run.run_dir.empty()) log_.emplace(run.run_dir, job_.log);
    log_info("rank {} of {}: {}", engine.rank(), engine.world(), strategy_->describe());
  }

  void run() {
    slot_.state.store(WorkerState::training);
    model_->train(true);
    bool stopped = false;
    rate_.start();
    while (step_ < total_steps_ && !stopped) {
      const StepOutcome outcome = train_step();
      if (outcome.diverged_rank >= 0) stop_diverged(outcome.diverged_rank);
      stopped = outcome.stop;
      ++step_;
      after_step(outcome);
    }
    finish(stopped);
  }

  void leave() noexcept {
    if (strategy_) strategy_->close();
  }

 private:
  bool is_chief() const { return engine_.rank() == 0; }

  StrategyContext strategy_context() {
    return {.model = *model_,
            .engine = engine_,
            .optimizer = *optimizer_,
            .phases = phases_,
            .options = job_.strategy,
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

  StepOutcome train_step() {
    trace_.set_step(step_ + 1);
    strategy_->space().begin_step();
    Vote vote{.loss = 0, .stop = run_.control.stop_requested()};
    for (bool last = false; !last;) {
      PhaseSpan span(phases_, Phase::data);
      const LoadedBatch loaded = loader_.next();
      last = loaded.last_of_step;
      place_ = loaded;
      span.next(Phase::forward);
      const torch::Tensor loss = weighted_loss(loaded);
      if (loss.defined()) vote.loss += loss.item<double>();
      if (last) strategy_->begin_last_backward(vote);
      span.next(Phase::backward);
      if (loss.defined()) loss.backward();
    }
    return strategy_->finish_step({.lr = current_lr(),
                                   .step = step_,
                                   .clip_norm = job_.train.clip_norm,
                                   .want_norm = is_logged(step_ + 1)});
  }

  // The share this worker's rows have in the mean loss of the global batch. Undefined where there
  // are no rows and nothing else to do.
  torch::Tensor weighted_loss(const LoadedBatch& loaded) {
    StepContext& context = step_context();
    context.seed = job_.seed;
    context.step = step_;
    context.first_row = loaded.first_row;
    context.sum_over_workers = nullptr;
    if (engine_.world() > 1) {
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

  bool is_logged(std::int64_t steps_done) const {
    return steps_done % std::max<std::int64_t>(job_.log.every_steps, 1) == 0 || steps_done == 1 ||
           steps_done == total_steps_;
  }

  double epochs_done() const {
    return static_cast<double>(place_.after.epoch) +
           static_cast<double>(place_.after.offset) / static_cast<double>(run_.data.train->size());
  }

  void after_step(const StepOutcome& outcome) {
    samples_ += place_.global_rows;
    rate_.step_done(place_.global_rows);
    slot_.step.store(step_, std::memory_order_relaxed);
    slot_.epoch.store(epochs_done(), std::memory_order_relaxed);
    slot_.loss.store(outcome.loss, std::memory_order_relaxed);
    if (is_logged(step_)) log_step(outcome);
    // Who asked to stop does not want to wait for a validation.
    const std::string& when = job_.train.validate;
    const bool due = (when == "epoch" && place_.last_of_epoch) || step_ == total_steps_;
    if (due && when != "never" && !outcome.stop) run_validation();
    if (place_.last_of_epoch && job_.log.histograms && log_) {
      log_->histograms(strategy_->space(), step_);
    }
  }

  void log_step(const StepOutcome& outcome) {
    const double busy = phases_.seconds(Phase::communication) + phases_.seconds(Phase::wait);
    const RateWindow window = rate_.take_window();
    slot_.samples_per_second.store(window.samples_per_second, std::memory_order_relaxed);
    if (log_) {
      log_->step(
          {.step = step_,
           .epoch = epochs_done(),
           .loss = outcome.loss,
           .lr = learning_rate(job_.train.schedule, job_.train.optimizer.lr, step_ - 1,
                               total_steps_, engine_.world()),
           .samples_per_second = window.samples_per_second,
           .gradient_norm = outcome.gradient_norm,
           .communication_share = window.seconds > 0 ? (busy - logged_busy_) / window.seconds : 0});
    }
    logged_busy_ = busy;
  }

  void run_validation() {
    const StepRate::Pause pause(rate_);
    slot_.state.store(WorkerState::validating);
    const ValidationResult result = validate(*model_, evaluation_, loss_, *strategy_);
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

  // All workers come here in the same step, before any of them has applied it.
  [[noreturn]] void stop_diverged(int rank) {
    const bool saved = save();
    fill_result();
    // Nobody fails before the chief has saved, or it might be ended with the others too early.
    float done = 1;
    strategy_->sum_over_workers({&done, 1});
    throw Error(
        ErrorCode::diverged,
        fmt::format("the loss of step {} is not a finite number on rank {}; {}", step_ + 1, rank,
                    !is_chief() ? "stopped before the update"
                    : saved     ? "the parameters before that step are in model.safetensors"
                                : "the parameters before that step are not finite either"))
        .about_rank(rank);
  }

  bool save() {
    if (!is_chief() || run_.run_dir.empty()) return false;
    return save_model(run_.run_dir / "model.safetensors", *model_,
                      {{"step", std::to_string(step_)}, {"job", job_.name}});
  }

  void finish(bool stopped) {
    save();
    if (log_) log_->close();
    trace_.write(run_.run_dir, engine_.rank());
    fill_result();
    strategy_->close();
    if (stopped) log_info("rank {} stopped after step {} as asked", engine_.rank(), step_);
    slot_.state.store(WorkerState::done);
  }

  void fill_result() {
    WorkerResult& result = slot_.result;
    const Traffic traffic = strategy_->traffic();
    result.steps = step_;
    result.samples = samples_;
    result.epochs = step_ > 0 ? epochs_done() : 0;
    result.samples_per_second = rate_.steady();
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
  WorkerSlot& slot_;
  std::unique_ptr<Optimizer> optimizer_;
  LossFunction loss_;
  std::unique_ptr<Model> model_;
  std::int64_t total_steps_;
  PhaseClock phases_;
  WorkerTrace trace_;
  std::unique_ptr<Strategy> strategy_;
  BatchLoader loader_;
  EvaluationBatches evaluation_;
  std::optional<ChiefLog> log_;
  StepRate rate_;

  std::int64_t step_ = 0;  // Steps done.
  std::int64_t samples_ = 0;
  double logged_busy_ = 0;
  BatchPlace place_;
};

}  // namespace

std::int64_t total_steps(const TrainOptions& train, std::int64_t samples) {
  return train.steps > 0 ? train.steps : train.epochs * steps_per_epoch(samples, train.batch);
}

void run_worker(const WorkerRun& run, Engine& engine, const std::function<void()>& on_failure) {
  std::optional<Worker> worker;
  try {
    worker.emplace(run, engine);
    worker->run();
  } catch (...) {
    on_failure();
    if (worker) worker->leave();
    throw;
  }
}

}  // namespace cohort
