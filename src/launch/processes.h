#pragma once

#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cluster/task_name.h"
#include "os/child_processes.h"
#include "os/cores.h"

// The processes of a run and what each of them is to do. A *task* is one worker or one server; a
// *process* usually has one task, and in in-graph replication all tasks of the run as threads.

namespace cohort::launch {

/// Which tasks a process has: one worker (by its number), one server, or all of them as threads.
struct ProcessPlan {
  std::vector<int> workers = {};  ///< By number; none: the process is a server.
  std::vector<int> servers = {};  ///< Numbers of servers.
  int world = 1;  ///< Workers of the group; of one that can change groups, of the first.
  std::vector<int> served = {};  ///< Of a server: its workers, by rank; empty: the first `world`.
  std::int64_t generation = 1;   ///< The group a worker waits for first, or a server serves.
  bool remote = false;           ///< Other workers have launchers of their own.
  std::string failpoints = {};   ///< See set_failpoints.
  os::LocalPlace place = {};  ///< Of the process among those of its host; found out where `remote`.
};

/// The name of the process: that of its first worker, or of its server.
inline std::string task_name(const ProcessPlan& plan, char separator = ' ') {
  return plan.workers.empty()
             ? cluster::task_name(cluster::kServerRole, plan.servers.front(), separator)
             : cluster::task_name(cluster::kWorkerRole, plan.workers.front(), separator);
}

/// The processes behind a run's tasks, by their index: the order in which they were started,
/// counted from 0 and never used again. The launcher knows them only so: forked ones in a run,
/// invented ones in tests. For the launcher's thread.
class Processes {
 public:
  using End = os::ChildProcesses::End;

  virtual ~Processes() = default;

  /// Throws Error where none can be made now; no index is used up then.
  virtual void start(const ProcessPlan& plan) = 0;
  /// Those that ended since the last call, each once. Does not wait.
  virtual std::vector<End> reap() = 0;
  /// Of those that were started and are not reaped yet.
  virtual std::size_t running() const = 0;
  virtual bool is_running(std::size_t index) const = 0;
  virtual std::int64_t pid(std::size_t index) const = 0;
  /// Ends it at once, as SIGKILL does, if it still runs. reap() tells when it has ended.
  virtual void kill(std::size_t index) = 0;
};

/// Processes forked from this one. They cannot outlive it (see ChildProcesses).
class ForkedProcesses : public Processes {
 public:
  /// The whole life of a process, which returns its exit code, and where its output goes; see
  /// ChildProcesses::start.
  using Life = std::function<int(const ProcessPlan& plan)>;
  using LogOf = std::function<std::filesystem::path(const ProcessPlan& plan)>;

  ForkedProcesses(Life life, LogOf log_of) : life_(std::move(life)), log_of_(std::move(log_of)) {}

  void start(const ProcessPlan& plan) override {
    children_.start([&] { return life_(plan); }, log_of_(plan));
  }
  std::vector<End> reap() override { return children_.reap(); }
  std::size_t running() const override { return children_.running(); }
  bool is_running(std::size_t index) const override { return children_.is_running(index); }
  std::int64_t pid(std::size_t index) const override { return children_.pid(index); }
  void kill(std::size_t index) override { children_.signal(index, SIGKILL); }

 private:
  Life life_;
  LogOf log_of_;
  os::ChildProcesses children_;
};

}  // namespace cohort::launch
