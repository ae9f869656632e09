#pragma once

#include <cohort/job.h>
#include <cohort/train.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cohort {

/// A step that a run has logged (metrics.jsonl has more).
struct StepReport {
  std::int64_t step = 0;  ///< Steps done: the first is 1.
  double epoch = 0;
  double loss = 0;
  double lr = 0;
  double samples_per_second = 0;
};

/// How a run is started beside what it computes.
struct StartOptions {
  RunOptions run = {};

  /// The processor cores that the run may use, by their numbers; empty: those of the caller.
  std::vector<int> cores = {};

  /// By what a launcher of several hosts says which worker this is: RANK, WORLD_SIZE, MASTER_ADDR …
  /// Empty: the run is this machine's alone, whatever the environment of this process says.
  std::map<std::string, std::string> environment = {};

  /// Called in the caller's process, by poll() and wait(), for every step that the run has logged
  /// (`log.every_steps`), each once and in their order.
  std::function<void(const StepReport& step)> on_step = {};

  /// SIGINT, SIGTERM, SIGHUP and SIGUSR1 to the thread that calls start(), or to a process that has
  /// no other, are the run's, which gets them from wait(). At most one run at a time has it, and is
  /// started, waited for and destroyed by one thread. Without it a run takes no signals of the
  /// caller's.
  bool signals = false;
};

/// The variables of this process' environment that StartOptions::environment may have.
std::map<std::string, std::string> launch_variables();

/// A training that goes on in processes of its own. Whatever happens to the caller's process, no
/// process of the run outlives it. To be used by one thread at a time.
class Run {
 public:
  Run(Run&& other) noexcept;
  Run& operator=(Run&& other) noexcept;
  /// Ends a run that is not over, at once. What its checkpoints have is not lost.
  ~Run();

  /// Calls on_step for what was logged since the last call. Does not wait. True once the run is
  /// over; wait() then returns at once.
  bool poll();

  /// Asks the run to save and to end after the step it is in; asked again, it ends at once; asked a
  /// third time, its processes are killed. Then Summary::status is "interrupted".
  void stop();

  /// Returns when the run is over. What `cohort train` would end with is Summary::exit_code. Throws
  /// Error where the run could not begin (wrong data, say), or its launcher was killed. To be
  /// called once.
  Summary wait();

  /// The run's folder; empty until poll() or wait() has heard of it.
  const std::string& run_dir() const;

  /// The process that starts and watches the run's others.
  std::int64_t launcher() const;

 private:
  friend Run start(const Job& job, const StartOptions& options);
  friend Summary train(const Job& job, const RunOptions& options);
  struct State;
  explicit Run(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Starts to train `job` and returns at once. There may be any number of runs at a time, each with
/// cores of its own (StartOptions::cores); they must differ in their folders. Throws Error for a
/// wrong job.
///
/// The caller may have threads, and may start runs from a thread that then ends. Where the first
/// line of main is cohort::use_fast_kernels() and the job has no functions of the program's own,
/// the run's launcher is a copy of the program that is started anew, and its threads may compute,
/// too. Otherwise it is forked: then no other thread may be within a computation of several BLAS
/// threads while start() runs.
Run start(const Job& job, const StartOptions& options = {});

}  // namespace cohort
