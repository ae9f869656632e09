#pragma once

#include <string>
#include <vector>

#include "os/child_processes.h"
#include "programs/first_cause.h"
#include "programs/output.h"
#include "programs/program_run.h"

namespace cohort::programs {

/// The processes of this host's ranks, started once: no shell, each with its variables, its share of
/// the cores, a session of its own and, where it is rank 0, this process's standard input; others have
/// /dev/null. None outlives this process, or the object. For the thread that made it.
class Ranks {
 public:
  /// Starts all. `output` gives each where it writes to, and has not begun yet. Throws Error where one
  /// cannot be started; then none runs on.
  Ranks(const ProgramRun& run, int restart, Output& output);

  bool running() const { return children_.running() > 0; }

  /// Takes those that have ended since the last call; `told` and `by_us` of RankEnd are not known here.
  std::vector<RankEnd> reap();

  /// To all that run, and to what they have started, as far as it stayed in their process groups.
  void signal(int signal) { children_.signal_groups(signal); }

  /// Whether a process that has ended is one of them, and not an orphan that was adopted.
  bool knows(pid_t pid) const;

 private:
  void start(int local_rank, const std::vector<std::string>& variables, Output& output);

  const ProgramRun& run_;
  const std::string program_;
  std::vector<int> cores_;
  std::vector<std::string> logs_;  // By local rank.
  os::ChildProcesses children_{os::ChildProcesses::Session::own};
  std::int64_t oom_kills_;  // The kernel's count when ranks were last reaped.
};

}  // namespace cohort::programs
