#pragma once

#include "train/worker_life.h"

namespace cohort {

/// Which steps are logged, and what is told of them: to the launcher by every worker, to the run
/// folder by the chief.
class StepLog {
 public:
  /// What a step's record is made of, besides what the worker's life knows.
  struct Step {
    std::int64_t steps_done = 0;
    double epochs_done = 0;
    double lr = 0;
    StepOutcome outcome = {};
    std::uint64_t bytes_sent = 0;
  };

  /// `pace` and `view` are those of the group; steps up to `logged_step` were logged before it. The
  /// first one after is logged only where it would be anyway, so that a run that was interrupted
  /// has the lines of one that was not.
  StepLog(WorkerLife& life, Pace pace, const View& view, std::int64_t logged_step);

  /// Not every worker takes part in every step, so it is those steps that pass a multiple. None is
  /// logged after a later one.
  bool is_due(std::int64_t steps_done) const;

  void write(const Step& step);

  /// This worker's part of a rate that it measured.
  double own_rate(double rate) const;

 private:
  double rate_of_all(double rate) const;

  WorkerLife& life_;
  Pace pace_;
  View view_;
  std::int64_t logged_step_;
  std::int64_t logged_own_steps_;
  double logged_busy_;
  double logged_wait_;
};

}  // namespace cohort
