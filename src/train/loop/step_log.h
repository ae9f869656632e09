#pragma once

#include <functional>
#include <vector>

#include "kinds/strategy_table.h"
#include "launch/control/due_losses.h"
#include "train/worker_life.h"

namespace cohort {

/// Which steps are logged, and what is told of them: to the launcher by every worker, to the run
/// folder by the chief. Steps are logged in their order, none twice.
///
/// Where steps are handed out in pieces, nobody knows who makes a piece of a step that is due; the
/// chief may make none. So every worker leaves what it knows of such a piece in its LossQueue, and
/// the chief makes a line of it when the step is settled (see DueLosses). Where the chief cannot
/// see the other workers' memory, because they have launchers of their own, it tells of the steps
/// it took part in, of those that pass a multiple, and of the last one.
class StepLog {
 public:
  /// What a step's record is made of, besides what the worker's life knows.
  struct Step {
    std::int64_t steps_done = 0;
    std::int64_t part = 0;         ///< Where steps are handed out: which one of it.
    std::int64_t rows = 0;         ///< This worker's,
    std::int64_t global_rows = 0;  ///< and those of the step.
    StepOutcome outcome = {};
  };

  /// For a group that begins with `step`. What was logged before it is not logged again, and the
  /// first one after is logged only where it would be anyway, so that a run that was interrupted
  /// has the lines of one that was not. The chief has taken over the log by then. `bytes_sent`: by
  /// this worker so far.
  StepLog(WorkerLife& life, const View& view, std::int64_t step,
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
    LossQueue queue;
    std::uint64_t taken = 0;  ///< Up to where it was read.
  };

  std::int64_t logged_before(std::int64_t step) const;
  bool passes_multiple(std::int64_t before, std::int64_t steps_done) const;
  bool is_shared() const;
  void put_piece(const Step& step);
  void note_pace(const StepOutcome& outcome);
  void find_queues();
  void take_pieces();
  void release_pieces();
  std::vector<std::int64_t> held_steps() const;
  void write(const StepLoss& step);
  double rate_of_all(double rate) const;

  WorkerLife& life_;
  StrategyTraits traits_;
  View view_;
  std::function<std::uint64_t()> bytes_sent_;
  bool shared_;  // Steps are handed out, and the chief sees what all workers leave.
  std::int64_t logged_step_;
  std::int64_t paced_step_;  // Up to which this worker has noted its pace.
  std::int64_t paced_own_steps_;
  double paced_busy_;
  double paced_wait_;
  double communication_share_ = 0;
  bool told_full_ = false;
  DueLosses losses_;
  std::vector<ReadQueue> queues_;  // The chief's.
};

}  // namespace cohort
