#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "launch/process_plan.h"
#include "os/child_processes.h"

namespace cohort {

/// The processes behind a run's tasks, by the order in which they were started. The launcher knows
/// them only so: forked ones in a run, invented ones in tests.
class Processes {
 public:
  using End = ChildProcesses::End;

  virtual ~Processes() = default;

  /// Throws Error where none can be made now.
  virtual void start(const ProcessPlan& plan) = 0;
  /// Those that ended since the last call. Does not wait.
  virtual std::vector<End> reap() = 0;
  virtual std::size_t running() const = 0;
  virtual bool is_running(std::size_t index) const = 0;
  virtual std::int64_t pid(std::size_t index) const = 0;
  /// Ends it at once, as SIGKILL does, if it still runs.
  virtual void kill(std::size_t index) = 0;
};

/// Processes forked from this one.
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
  void kill(std::size_t index) override;

 private:
  Life life_;
  LogOf log_of_;
  ChildProcesses children_;
};

}  // namespace cohort
