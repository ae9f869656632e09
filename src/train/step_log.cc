#include "train/step_log.h"

#include <algorithm>

namespace cohort {

StepLog::StepLog(WorkerLife& life, Pace pace, const View& view, std::int64_t logged_step)
    : life_(life),
      pace_(pace),
      view_(view),
      logged_step_(logged_step),
      logged_own_steps_(life.own_steps),
      logged_busy_(life.phases.seconds(Phase::communication) + life.phases.seconds(Phase::wait)),
      logged_wait_(life.phases.seconds(Phase::wait)) {}

bool StepLog::is_due(std::int64_t steps_done) const {
  const std::int64_t every = std::max<std::int64_t>(life_.run.job.log.every_steps, 1);
  if (steps_done <= logged_step_) return false;
  return logged_step_ == 0 || steps_done / every != logged_step_ / every ||
         steps_done == life_.total_steps;
}

void StepLog::write(const Step& step) {
  const double wait = life_.phases.seconds(Phase::wait);
  const double busy = life_.phases.seconds(Phase::communication) + wait;
  const RateWindow window = life_.rate.take_window();
  WorkerSlot& slot = life_.slot;
  // The first window is that of the first step, which touches memory for the first time.
  if (logged_own_steps_ > 0) {
    slot.step_seconds.store((window.seconds - (wait - logged_wait_)) /
                            static_cast<double>(life_.own_steps - logged_own_steps_));
  }
  slot.own_samples_per_second.store(own_rate(window.samples_per_second));
  slot.samples_per_second.store(rate_of_all(window.samples_per_second));
  slot.staleness.store(step.outcome.staleness.value_or(-1));
  if (life_.log) {
    life_.log->step(
        {.step = step.steps_done,
         .epoch = step.epochs_done,
         .loss = step.outcome.loss,
         .lr = step.lr,
         .samples_per_second = slot.samples_per_second.load(),
         .gradient_norm = step.outcome.gradient_norm,
         .communication_share = window.seconds > 0 ? (busy - logged_busy_) / window.seconds : 0,
         .seconds = life_.rate.seconds(),
         .bytes_sent = step.bytes_sent,
         .staleness = step.outcome.staleness,
         .consensus_distance = step.outcome.consensus_distance});
    life_.run.control.set_logged_step(step.steps_done);
  }
  logged_busy_ = busy;
  logged_wait_ = wait;
  logged_own_steps_ = life_.own_steps;
  logged_step_ = step.steps_done;
}

double StepLog::own_rate(double rate) const {
  return pace_.lockstep ? rate / static_cast<double>(view_.world()) : rate;
}

// Workers of other hosts cannot be seen from here; they count like the ones that can.
double StepLog::rate_of_all(double rate) const {
  if (pace_.lockstep) return rate;
  double sum = 0;
  int seen = 0;
  for (const int worker : view_.workers) {
    const double own =
        life_.run.control.slot(worker).own_samples_per_second.load(std::memory_order_relaxed);
    sum += own;
    seen += own > 0 ? 1 : 0;
  }
  return seen == 0 ? rate : sum / seen * view_.world();
}

}  // namespace cohort
