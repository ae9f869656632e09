#include "train/loop/step_log.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "optimizer/learning_rate.h"
#include "train/loop/step_rate.h"

namespace cohort::training {

StepLog::StepLog(WorkerLife& life, const cluster::View& view, std::int64_t step,
                 std::function<std::uint64_t()> bytes_sent)
    : life_(life),
      traits_(kinds::way_of(life.run.job.strategy).traits),
      view_(view),
      bytes_sent_(std::move(bytes_sent)),
      shared_(traits_.hands_out_work && is_shared()),
      logged_step_(logged_before(step)),
      speed_step_(logged_step_),
      speed_own_steps_(life.own_steps),
      speed_busy_(life.phases.seconds(Phase::communication) + life.phases.seconds(Phase::wait)),
      speed_wait_(life.phases.seconds(Phase::wait)) {
  life_.card.held_step.store(launch::kHoldsNothing);
  if (shared_ && life_.log) find_queues();
}

/// Of all that were ever started: who is lost may have left something too. Who comes later comes
/// with another group.
void StepLog::find_queues() {
  const auto cards = life_.run.control.cards();
  for (std::size_t worker = 0; worker < cards.size(); ++worker) {
    if (cards[worker].state.load() == launch::TaskState::absent) continue;
    queues_.push_back({.queue = life_.run.control.losses_of(static_cast<int>(worker))});
  }
}

/// Workers of other launchers have cards of their own there.
bool StepLog::is_shared() const {
  return std::ranges::all_of(view_.workers, [&](int worker) {
    return life_.run.control.card(worker).state.load() != launch::TaskState::absent;
  });
}

// Where steps are handed out they are not logged in the order they are done in.
std::int64_t StepLog::logged_before(std::int64_t step) const {
  const std::int64_t logged = life_.run.control.logged_step();
  return traits_.hands_out_work && logged >= 0 ? logged : std::max(step, logged);
}

bool StepLog::passes_multiple(std::int64_t before, std::int64_t steps_done) const {
  const std::int64_t every = std::max<std::int64_t>(life_.run.job.log.every_steps, 1);
  return before == 0 || steps_done / every != before / every || steps_done == life_.total_steps;
}

bool StepLog::is_due(std::int64_t steps_done) const {
  if (!shared_) return steps_done > logged_step_ && passes_multiple(logged_step_, steps_done);
  return steps_done > life_.run.control.logged_step() &&
         passes_multiple(steps_done - 1, steps_done);
}

void StepLog::ask_for_work() {
  if (shared_) life_.card.held_step.store(launch::kHoldsAny);
}

void StepLog::begin_piece(std::int64_t steps_done) {
  if (shared_) life_.card.held_step.store(is_due(steps_done) ? steps_done : launch::kHoldsNothing);
}

void StepLog::hand_in(std::int64_t steps_done) {
  if (shared_) life_.card.held_step.store(steps_done);
}

// The order is what the chief relies on (see the header): the piece is put before anything else is
// held. In lockstep nothing is shared: votes were summed, so the chief knows the loss and writes it.
void StepLog::step_done(const Step& step) {
  life_.rate.step_done(traits_.lockstep ? step.global_rows : step.rows);
  const bool due = is_due(step.steps_done);
  if (shared_ && due) put_piece(step);
  if (step.outcome.next && !step.outcome.stop) {
    begin_piece(step.outcome.next->step + 1);
  } else {
    life_.card.held_step.store(launch::kHoldsNothing);
  }
  if (step.steps_done > speed_step_ && passes_multiple(speed_step_, step.steps_done)) {
    speed_step_ = step.steps_done;
    note_speed(step.outcome);
  }
  if (shared_) {
    write_rest(false);
  } else if (due) {
    write({.step = step.steps_done,
           .loss = step.outcome.loss,
           .gradient_norm = step.outcome.gradient_norm,
           .staleness = step.outcome.staleness,
           .consensus_distance = step.outcome.consensus_distance});
  }
}

void StepLog::put_piece(const Step& step) {
  const strategy::StepOutcome& outcome = step.outcome;
  const bool put = life_.run.control.losses_of(life_.worker)
                       .put({.step = step.steps_done,
                             .part = step.part,
                             .rows = step.rows,
                             .global_rows = step.global_rows,
                             .loss = outcome.loss,
                             .gradient_norm = outcome.gradient_norm,
                             .staleness = outcome.staleness.value_or(launch::PieceLoss::kNone),
                             .consensus_distance =
                                 outcome.consensus_distance.value_or(launch::PieceLoss::kNone)});
  if (put || told_full_) return;
  told_full_ = true;
  log_warn("the chief has not taken {} losses of this worker; step {} is missing in its log",
           launch::LossQueue::kRoom, step.steps_done);
}

// How fast this worker is lately, where the launcher sees it: from there the slow ones are named.
void StepLog::note_speed(const strategy::StepOutcome& outcome) {
  const double wait = life_.phases.seconds(Phase::wait);
  const double busy = life_.phases.seconds(Phase::communication) + wait;
  const RateWindow window = life_.rate.take_window();
  launch::WorkerCard& card = life_.card;
  // The first window is that of the first step, which touches memory for the first time.
  if (speed_own_steps_ > 0) {
    card.step_seconds.store((window.seconds - (wait - speed_wait_)) /
                            static_cast<double>(life_.own_steps - speed_own_steps_));
  }
  card.own_samples_per_second.store(own_rate(window.samples_per_second));
  card.samples_per_second.store(rate_of_all(window.samples_per_second));
  card.staleness.store(outcome.staleness.value_or(-1));
  communication_share_ = window.seconds > 0 ? (busy - speed_busy_) / window.seconds : 0;
  speed_busy_ = busy;
  speed_wait_ = wait;
  speed_own_steps_ = life_.own_steps;
}

// What workers hold is looked at before their pieces: who holds nothing any more has left its own.
void StepLog::write_rest(bool all) {
  if (!shared_ || !life_.log) return;
  const std::vector<std::int64_t> held = held_steps();
  take_pieces();
  const std::int64_t before = logged_step_;
  while (const auto step = losses_.next(held, all)) write(*step);
  if (logged_step_ > before) release_pieces();
}

std::vector<std::int64_t> StepLog::held_steps() const {
  std::vector<std::int64_t> held;
  for (const int worker : view_.workers) {
    held.push_back(life_.run.control.card(worker).held_step.load());
  }
  // A step that was logged is made again: it delays nothing.
  std::erase_if(held,
                [&](std::int64_t one) { return one != launch::kHoldsAny && one <= logged_step_; });
  return held;
}

void StepLog::take_pieces() {
  for (auto& [queue, taken] : queues_) {
    const std::uint64_t end = queue.end();
    for (taken = std::max(taken, queue.begin()); taken < end; ++taken) {
      const launch::PieceLoss& piece = queue.at(taken);
      if (piece.step > logged_step_) losses_.add(piece);
    }
  }
}

// Only what is logged is released; should this chief die, the next one finds the rest.
void StepLog::release_pieces() {
  for (auto& [queue, taken] : queues_) {
    const std::uint64_t first = queue.begin();
    std::uint64_t position = first;
    while (position < taken && queue.at(position).step <= logged_step_) ++position;
    if (position > first) queue.release(position);
  }
}

void StepLog::write(const launch::StepLoss& step) {
  logged_step_ = step.step;
  if (!life_.log) return;
  const Job& job = life_.run.job;
  life_.log->step({.step = step.step,
                   .epoch = life_.epochs_after(step.step),
                   .loss = step.loss,
                   .lr = optimizer::learning_rate(job.train.schedule, job.train.optimizer.lr,
                                                  step.step - 1, life_.total_steps, view_.world()),
                   .samples_per_second = life_.card.samples_per_second.load(),
                   .gradient_norm = step.gradient_norm,
                   .communication_share = communication_share_,
                   .seconds = life_.rate.seconds(),
                   .bytes_sent = bytes_sent_(),
                   .staleness = step.staleness,
                   .consensus_distance = step.consensus_distance});
  life_.run.control.set_logged_step(step.step);
}

void StepLog::write_last(double loss) {
  if (logged_step_ < life_.total_steps) write({.step = life_.total_steps, .loss = loss});
}

double StepLog::own_rate(double rate) const {
  return traits_.lockstep ? rate / static_cast<double>(view_.world()) : rate;
}

// Workers of other hosts cannot be seen from here; they count like the ones that can.
double StepLog::rate_of_all(double rate) const {
  if (traits_.lockstep) return rate;
  double sum = 0;
  int seen = 0;
  for (const int worker : view_.workers) {
    const double own =
        life_.run.control.card(worker).own_samples_per_second.load(std::memory_order_relaxed);
    sum += own;
    seen += own > 0 ? 1 : 0;
  }
  return seen == 0 ? rate : sum / seen * view_.world();
}

void StepBooks::begin_step(std::int64_t steps) {
  began_ = Clock::now();
  life_.trace.set_step(steps);
  wait_before_ = life_.phases.seconds(Phase::wait);
}

void StepBooks::step_done(std::int64_t steps, double loss) {
  life_.count_rows();
  life_.wait_in_steps += life_.phases.seconds(Phase::wait) - wait_before_;
  launch::WorkerCard& card = life_.card;
  card.longest_step.store(
      std::max(card.longest_step.load(std::memory_order_relaxed), seconds_since(began_)),
      std::memory_order_relaxed);
  card.step.store(steps, std::memory_order_relaxed);
  card.epoch.store(life_.epochs_after(steps), std::memory_order_relaxed);
  card.loss.store(loss, std::memory_order_relaxed);
}

Traffic StepBooks::traffic() const {
  return life_.traffic_before + strategy_.report().traffic;
}

void StepBooks::fill_result(std::int64_t steps, const StepLog& log) const {
  launch::WorkerResult& result = life_.card.result;
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
  result.left_out = all.left_out;
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
    result.phase_seconds[i] = life_.phases.seconds(static_cast<Phase>(i));
  }
  launch::put_text(result.engine, engine_);
  launch::put_text(result.strategy, strategy_.report().words);
}

}  // namespace cohort::training
