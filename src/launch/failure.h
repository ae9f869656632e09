#pragma once

#include <cohort/error.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/exit_code.h"
#include "cluster/task_name.h"

// The loss of a task, from its description to what follows from it:
//
//   describe()       the sentence the user reads
//   sort_by_cause()  of several losses at once, which one is to blame
//   is_hopeless()    whether a new process would fail in the same way
//   RestartBudget    whether, and how soon, there is a new process
//   exit_code()      what the run exits with where there is none (cluster/exit_code.h)
//
// All of it is arithmetic: no processes, no clock of its own, no files.

namespace cohort::launch {

/// How one task ended, a worker or a server, that did not end well.
struct TaskFailure {
  std::string role = cluster::kWorkerRole;
  int number = 0;  ///< Among those of its role.
  std::int64_t pid = 0;
  std::string host = {};
  std::int64_t step = 0;  ///< Steps it had done; only of workers.
  int signal = 0;         ///< That killed it; 0 where it failed by itself.
  bool out_of_memory = false;
  bool was_silent = false;         ///< It was ended because it gave no sign of life.
  ErrorCode code = ErrorCode::io;  ///< Where it failed by itself.
  std::string message = {};
  std::string log = {};  ///< Its log file; may be empty.
};

/// Puts the first cause first: deaths by a signal outrank a worker's own error, which outranks the
/// loss of a peer (that is what the others' failures do to a healthy worker). Equals keep their
/// order.
void sort_by_cause(std::vector<TaskFailure>& failures);

/// A sentence that names rank, step, cause and log.
std::string describe(const TaskFailure& failure);

/// Whether the same would happen to a new process: an error of its own that has nothing to do with
/// the disk or its peers.
bool is_hopeless(const TaskFailure& failure);

/// What a run whose first cause is `failure` exits with.
int exit_code(const TaskFailure& failure);

/// How often lost tasks may be replaced. A run of weeks may lose many, so only those of the last
/// ten minutes count; and a task that dies again within a minute of being replaced is given more
/// and more time (0, 1, 2, 4, … at most 30 seconds), so that one that cannot live does not keep the
/// others busy.
class RestartBudget {
 public:
  explicit RestartBudget(std::int64_t most) : most_(most) {}

  /// How long to wait before `task` is started again; nothing where it shall not be. What was given
  /// is taken, whether or not the caller makes use of it.
  std::optional<Duration> take(const std::string& task, Clock::time_point now);

  /// All that were given since the start.
  std::int64_t taken() const { return taken_; }

 private:
  struct Restart {
    std::string task;
    Clock::time_point when;
  };

  std::int64_t most_;  // Within ten minutes.
  std::int64_t taken_ = 0;
  std::deque<Restart> recent_;  // Oldest first; none older than ten minutes after a take().
};

}  // namespace cohort::launch
