#pragma once

#include <cohort/run.h>
#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace cohort::training {

/// The process that launches a run, and what it says: the caller's end of Run.
///
///   caller (Run)                 keeper thread                launcher process
///   LauncherProcess()  ───────►  starts it        ─────────►  run_here(): forks workers, …
///   next_message()     ◄────────────── pipe ────────────────  messages, below
///   signal()           ─────────────── kill() ─────────────►  stop; once more: at once
///   status()           ◄───────  waits for its end  ◄───────  ends
///   metrics.jsonl of the run folder has the steps (MetricsTail); they are no messages.
///
/// It is a child of a thread that does nothing else and lives as long as it: the kernel ends the
/// child when that thread ends, which it does only after it, or with the whole process. The child
/// has a process group of its own, so that a Ctrl-C at the terminal reaches only the caller.
///
/// Where it can be, the child is this program started anew, which the threads of the caller cannot
/// harm; main leaves its way at use_fast_kernels() (kernel/program_start.h). A job that has
/// functions of the program's own must be forked. So must that of a program whose main has no such
/// door.
///
/// It sends messages through a pipe, a line of JSON each. Once there is a folder:
///   {"run_dir": …, "after_step": …}
/// and at the end one of:
///   {"summary": …, "run_dir": …, "exit_code": …}    {"error": …, "code": …, "rank": …}
/// A launcher that is killed sends nothing at the end; status() says what ended it.
///
/// Its calls are for one thread, but signal(), which any may make.
class LauncherProcess {
 public:
  struct Task {
    Job job;
    RunOptions options = {};
    std::vector<int> cores = {};                          ///< Empty: all there are.
    std::map<std::string, std::string> environment = {};  ///< See StartOptions.
  };

  /// `anew`: rather start the program anew than fork, where that can be.
  LauncherProcess(const Task& task, bool anew);
  /// Ends the process, if it has not ended.
  ~LauncherProcess();
  LauncherProcess(const LauncherProcess&) = delete;
  LauncherProcess& operator=(const LauncherProcess&) = delete;

  pid_t pid() const { return pid_; }

  /// To the process, if it has not ended.
  void signal(int signal);

  /// The next message. Does not wait. is_over() becomes true where there is none and will be none.
  std::optional<std::string> next_message();
  bool is_over() const { return over_; }
  /// How the process ended, as waitpid reports it, once is_over().
  int status();

  /// Returns when there may be a message, or after `at_most`.
  void wait(std::chrono::milliseconds at_most) const;

 private:
  bool has_ended();
  void keep(const Task& task, bool anew, int messages);

  UniqueFd messages_;   // The pipe's end to read from; does not block.
  std::string buffer_;  // What was read and is no whole message yet, or was not asked for.
  bool over_ = false;
  bool at_end_ = false;  // Of the pipe: nobody can write to it any more.

  std::mutex mutex_;  // Of what the keeper writes:
  std::condition_variable changed_;
  pid_t pid_ = 0;
  bool started_ = false;
  bool ended_ = false;
  int status_ = 0;
  std::exception_ptr problem_;  // Why there is no process.
  std::thread keeper_;
};

/// Whether functions of the program's own are part of the job, so that no file can describe it.
bool has_own_functions(const Job& job);

}  // namespace cohort::training
