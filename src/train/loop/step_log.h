#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/traffic.h"
#include "kinds/strategy_table.h"
#include "launch/control/piece_losses.h"
#include "strategy/strategy.h"
#include "train/worker_life.h"

// What is told of steps: StepBooks counts every step of this worker, for its card and its result;
// StepLog picks those that are logged, and writes them where this worker is the chief. Both belong
// to one group and keep in WorkerLife what goes on counting in the next. For the worker's thread.

namespace cohort::training {

/// Which steps are logged, and what is told of them: to the launcher by every worker, to the run
/// folder by the chief. Steps are logged in their order, none twice. A step is *due* where it
/// passes a multiple of log.every_steps, and the first and the last of the job are.
///
/// Where steps are handed out in pieces, nobody knows who makes a piece of a step that is due; the
/// chief may make none. So every worker leaves what it knows of such a piece in its LossQueue, and
/// the chief makes a line of it once the step can be told (piece_losses.h). A worker shows what it
/// holds on its card (`held_step`) before it can have it, and takes that back only after its piece
/// is in the queue; the chief reads what is held first and the queues second. So it misses no piece
/// but one: an earlier step's, of a worker that was lost, which may come with an answer.
///
///   worker   holds the step ── makes its piece ── puts its loss ── holds the next
///   chief    looks who holds what ── takes what is in the queues ── logs what can be told
///
///   ask_for_work()  held = any        begin_piece(n)  held = n, where n is due
///   hand_in(n)      held = n          step_done()     the piece is put, then held = the next one
///                                                     that is due, or nothing
///
/// Where the chief cannot see the other workers' memory, because they have launchers of their own,
/// it tells of the steps it took part in, of those that pass a multiple, and of the last one.
class StepLog {
 public:
  /// What a step's record is made of, besides what the worker's life knows.
  struct Step {
    std::int64_t steps_done = 0;
    std::int64_t part = 0;         ///< Where steps are handed out: which one of it.
    std::int64_t rows = 0;         ///< This worker's,
    std::int64_t global_rows = 0;  ///< and those of the step.
    strategy::StepOutcome outcome = {};
  };

  /// For a group that begins with `step`. What was logged before it is not logged again, and the
  /// first one after is logged only where it would be anyway, so that a run that was interrupted
  /// has the lines of one that was not. The chief has taken over the log by then. `bytes_sent`: by
  /// this worker so far.
  StepLog(WorkerLife& life, const cluster::View& view, std::int64_t step,
          std::function<std::uint64_t()> bytes_sent);

  bool is_due(std::int64_t steps_done) const;

  /// Where steps are handed out: this worker asks for the next piece, or works on one of the step
  /// that will be `steps_done`.
  void ask_for_work();
  void begin_piece(std::int64_t steps_done);
  /// It hands in this piece, and may get another one with the answer: of the same step or a later
  /// one, unless it is a lost worker's.
  void hand_in(std::int64_t steps_done);

  /// After every step of this worker, which also counts for its rate. Where the next piece came
  /// with it, that is begun.
  void step_done(const Step& step);

  /// The chief tells what there is to tell when nobody makes steps any more; with `all`, also of
  /// steps of which something is missing.
  void write_rest(bool all);

  /// Whether the chief can know the loss of every step.
  bool knows_all_pieces() const { return !traits_.hands_out_work || shared_; }
  /// Where it cannot: tells of the last step, if nothing was told of it yet.
  void write_last(double loss);

  /// This worker's part of a rate that it measured.
  double own_rate(double rate) const;

 private:
  struct ReadQueue {
    launch::LossQueue queue;
    std::uint64_t taken = 0;  ///< Up to where it was read.
  };

  std::int64_t logged_before(std::int64_t step) const;
  bool passes_multiple(std::int64_t before, std::int64_t steps_done) const;
  bool is_shared() const;
  void put_piece(const Step& step);
  void note_speed(const strategy::StepOutcome& outcome);
  void find_queues();
  void take_pieces();
  void release_pieces();
  std::vector<std::int64_t> held_steps() const;
  void write(const launch::StepLoss& step);
  double rate_of_all(double rate) const;

  WorkerLife& life_;
  kinds::StrategyTraits traits_;
  cluster::View view_;
  std::function<std::uint64_t()> bytes_sent_;
  bool shared_;               // Steps are handed out, and the chief sees what all workers leave.
  std::int64_t logged_step_;  // The newest, by whichever chief.
  std::int64_t speed_step_;   // Up to which this worker has noted its speed,
  std::int64_t speed_own_steps_;    // and what it had counted then: its steps,
  double speed_busy_;               // seconds of communication and waiting,
  double speed_wait_;               // of waiting alone.
  double communication_share_ = 0;  // Of the time since it noted its speed before.
  bool told_full_ = false;          // That its queue is full; once is enough.
  launch::DueLosses losses_;
  std::vector<ReadQueue> queues_;  // The chief's.
};

/// What a worker counts of its steps: the launcher sees it on the worker's card while it trains,
/// and as its result when it ends.
class StepBooks {
 public:
  /// `engine`: its name. The others outlive this.
  StepBooks(WorkerLife& life, const strategy::Strategy& strategy, std::string engine)
      : life_(life), strategy_(strategy), engine_(std::move(engine)) {}

  /// The step that makes it `steps` steps begins,
  void begin_step(std::int64_t steps);
  /// and is done, with this loss.
  void step_done(std::int64_t steps, double loss);

  /// By this worker so far, in all groups.
  Traffic traffic() const;

  /// Puts all that was counted onto the worker's card, where it stays when the worker is gone.
  void fill_result(std::int64_t steps, const StepLog& log) const;

 private:
  WorkerLife& life_;
  const strategy::Strategy& strategy_;
  std::string engine_;
  Clock::time_point began_;  // The step that is being made,
  double wait_before_ = 0;   // and the seconds of waiting before it.
};

}  // namespace cohort::training
