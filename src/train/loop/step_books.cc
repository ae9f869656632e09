#include "train/loop/step_books.h"

#include <algorithm>

namespace cohort {

void StepBooks::begin_step(std::int64_t steps) {
  began_ = Clock::now();
  life_.trace.set_step(steps);
  wait_before_ = life_.phases.seconds(Phase::wait);
}

void StepBooks::step_done(std::int64_t steps, double loss) {
  life_.count_rows();
  life_.wait_in_steps += life_.phases.seconds(Phase::wait) - wait_before_;
  WorkerSlot& slot = life_.slot;
  slot.longest_step.store(
      std::max(slot.longest_step.load(std::memory_order_relaxed), seconds_since(began_)),
      std::memory_order_relaxed);
  slot.step.store(steps, std::memory_order_relaxed);
  slot.epoch.store(life_.epochs_after(steps), std::memory_order_relaxed);
  slot.loss.store(loss, std::memory_order_relaxed);
}

Traffic StepBooks::traffic() const {
  const Traffic now = strategy_.report().traffic;
  return {life_.traffic_before.sent + now.sent, life_.traffic_before.received + now.received};
}

void StepBooks::fill_result(std::int64_t steps, const StepLog& log) const {
  WorkerResult& result = life_.slot.result;
  result.steps = steps;
  result.samples = life_.samples;
  result.epochs = life_.epochs_after(steps);
  result.samples_per_second = log.own_rate(life_.rate.steady());
  result.own_steps = life_.own_steps;
  if (life_.own_steps > 0) {
    result.step_seconds =
        (life_.rate.seconds() - life_.wait_in_steps) / static_cast<double>(life_.own_steps);
  }
  const Traffic all = traffic();
  result.bytes_sent = all.sent;
  result.bytes_received = all.received;
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
    result.phase_seconds[i] = life_.phases.seconds(static_cast<Phase>(i));
  }
  put_text(result.engine, engine_);
  put_text(result.strategy, strategy_.report().words);
}

}  // namespace cohort
