#pragma once

#include <cohort/job.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/control/control_block.h"
#include "launch/control/heartbeat.h"
#include "launch/failure.h"
#include "launch/processes.h"
#include "launch/run_status.h"

namespace cohort::launch {

/// The processes of a run as the launcher thinks of them: started, watched for signs of life, and
/// when they end badly described. It decides nothing: whether a lost task is replaced is the
/// launcher's business, who trains with whom that of Groups.
///
/// How a process ended is put together from two sides. The kernel says that it ended, and how; its
/// card in the control block says how far its tasks had come and what they themselves call the
/// reason. A task has ended well only where its card says `done`: an exit code alone says nothing.
/// For the launcher's thread.
class Tasks {
 public:
  /// All of it outlives the object.
  struct Options {
    const ClusterOptions& cluster;
    ControlBlock& control;
    Processes& processes;
    /// Where a process' output goes, to be named when it is lost; may be empty.
    std::function<std::filesystem::path(const ProcessPlan& plan)> log_of;
  };

  explicit Tasks(Options options);

  /// Clears the cards of its tasks and starts the process. Throws Error where none can be made; the
  /// cards are clear then all the same.
  void start(const ProcessPlan& plan);

  struct End {
    ProcessPlan plan;
    pid_t pid = 0;
    bool done = true;                        ///< All its tasks had said that they were done.
    std::vector<TaskFailure> failures = {};  ///< Of its tasks that did not end well.
  };
  /// Those that ended since the last call.
  std::vector<End> reap();

  /// Warns of tasks that give no sign of life, and ends those that have not for too long, so that
  /// they count as lost. Returns what is to be told.
  std::vector<std::string> end_silent(Clock::time_point now);

  /// Ends a worker that is in the others' way; `reason` is what becomes known as the cause.
  void end_worker(int worker, const std::string& reason);
  /// Ends all; what becomes of them is nobody's failure.
  void end_all();

  std::size_t running() const { return options_.processes.running(); }
  std::size_t running_servers() const;
  bool runs_worker(int worker) const;
  /// Those that run, for tasks.json.
  std::vector<RunStatus::Task> list(const cluster::View& view) const;

 private:
  struct Task {
    ProcessPlan plan;
    Pulse pulse;
    bool warned = false;             ///< Of its silence, which has not ended since.
    std::string ended_because = {};  ///< By this process; empty: it was not.
  };

  bool ended_well(const TaskCard& card) const;
  TaskCard& card_of(const ProcessPlan& plan) const;
  void clear_cards(const ProcessPlan& plan) const;
  TaskFailure describe_end(const TaskCard& card, const Processes::End& end) const;
  std::optional<std::string> look_at(std::size_t index, Clock::time_point now);

  Options options_;
  std::vector<Task> tasks_;  // By the processes' indices.
  bool ended_all_ = false;
  Clock::time_point last_look_ = Clock::now();
  std::int64_t oom_kills_;  // The kernel's count when processes were last reaped.
};

}  // namespace cohort::launch
