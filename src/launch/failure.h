#pragma once

#include <cohort/error.h>

#include <string>
#include <vector>

#include "launch/control/control_block.h"

namespace cohort {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitWrongUse = 2;
inline constexpr int kExitRetry = 138;  ///< Trying again may help.

/// How one task ended that did not end well.
struct WorkerFailure {
  std::string role = "worker";  ///< Or server.
  int rank = 0;                 ///< Among those of its role.
  std::int64_t pid = 0;
  std::string host = {};
  std::int64_t step = 0;
  int signal = 0;  ///< That killed it; 0 where it failed by itself.
  bool out_of_memory = false;
  bool was_silent = false;         ///< It was ended because it gave no sign of life.
  ErrorCode code = ErrorCode::io;  ///< Where it failed by itself.
  std::string message = {};
  std::string log = {};  ///< Its log file; may be empty.
};

/// Puts the first cause first: deaths by a signal outrank a worker's own error, which outranks the
/// loss of a peer (that is what the others' failures do to a healthy worker).
void sort_by_cause(std::vector<WorkerFailure>& failures);

/// A sentence that names rank, step, cause and log.
std::string describe(const WorkerFailure& failure);

/// What a run whose first cause is `failure` exits with.
int exit_code(const WorkerFailure& failure);

/// What a program exits with that was ended by this error.
int exit_code(ErrorCode code);

}  // namespace cohort
