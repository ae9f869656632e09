#include "train/launch.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/fail.h"
#include "base/files.h"
#include "cluster/signal_watch.h"
#include "train/slow_workers.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;

// What a worker takes at most to notice that a peer is gone, and to say so.
constexpr auto kGraceAfterFailure = 3s;
// What the workers get to finish their step after the first Ctrl-C.
constexpr auto kGraceAfterStop = 30s;
constexpr std::int64_t kSettledStep = 20;

/// How often the kernel has killed a process of this control group for want of memory.
std::int64_t out_of_memory_kills() {
  try {
    std::istringstream events(read_file("/sys/fs/cgroup/memory.events"));
    std::string name;
    for (std::int64_t count = 0; events >> name >> count;) {
      if (name == "oom_kill") return count;
    }
  } catch (const Error&) {
    // No such file: not in such a group, so nothing can be said.
  }
  return 0;
}

class Watcher {
 public:
  explicit Watcher(const Launch& launch) : launch_(launch) {}

  LaunchResult watch() {
    for (const ProcessPlan& plan : launch_.plans) start(plan);
    launch_.rendezvous.serve();
    while (children_.running() > 0) {
      if (const auto signal = signals_.wait(100ms)) handle(*signal);
      for (const auto& end : children_.reap()) note_end(end);
      launch_.progress.tick(live_workers());
      name_slow_workers();
      note_states();
      if (end_by_ && end_by_->passed()) children_.signal_all(SIGKILL);
    }
    launch_.progress.finish();
    sort_by_cause(result_.failures);
    return result_;
  }

 private:
  void start(const ProcessPlan& plan) {
    children_.start([&] { return run_process(launch_.run, plan, launch_.rendezvous); },
                    launch_.log_of(plan));
  }

  void handle(int signal) {
    if (signal == SIGCHLD) return;
    if (result_.signal != 0) {
      end_by_ = Deadline::in(0s);
      return;
    }
    result_.signal = signal;
    launch_.run.control.request_stop();
    end_by_ = Deadline::in(kGraceAfterStop);
    launch_.progress.say("stopping after this step; press Ctrl-C again to stop at once");
  }

  void note_end(const ChildProcesses::End& end) {
    const ProcessPlan& plan = launch_.plans[end.index];
    for (const int rank : plan.ranks) {
      WorkerSlot& slot = launch_.run.control.slot(rank);
      slot.result.task.peak_rss_bytes = end.peak_rss_bytes;
      if (slot.state.load() == WorkerState::done) continue;
      WorkerFailure failure{.rank = rank, .step = slot.step.load()};
      add_failure(std::move(failure), slot, end);
      ++lost_workers_;
    }
    for (const int server : plan.servers) {
      ServerSlot& slot = launch_.run.control.server(server);
      slot.task.peak_rss_bytes = end.peak_rss_bytes;
      if (slot.state.load() == WorkerState::done) continue;
      add_failure({.role = "server", .rank = server}, slot, end);
    }
    const bool failed = !WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0;
    if (failed && !end_by_) end_by_ = Deadline::in(kGraceAfterFailure);
  }

  /// A worker that has failed or finished may be a thread, or its process may hang in its last
  /// breath: the others' time is limited all the same.
  void note_states() {
    for (const WorkerSlot& slot : launch_.run.control.slots()) {
      const WorkerState state = slot.state.load();
      if (state == WorkerState::failed && !end_by_) end_by_ = Deadline::in(kGraceAfterFailure);
      if (state == WorkerState::done && !end_by_) {
        end_by_ = Deadline::in_seconds(launch_.run.job.cluster.timeout_seconds);
      }
    }
  }

  void add_failure(WorkerFailure failure, const TaskSlot& slot, const ChildProcesses::End& end) {
    failure.pid = end.pid;
    failure.log = launch_.log_of(launch_.plans[end.index]).string();
    if (slot.state.load() == WorkerState::failed) {
      failure.code = static_cast<ErrorCode>(slot.error_code);
      failure.message = slot.error.data();
    } else if (WIFSIGNALED(end.status)) {
      failure.signal = WTERMSIG(end.status);
      failure.out_of_memory = failure.signal == SIGKILL && out_of_memory_kills() > oom_before_;
      // Killed by ourselves because another one failed or the user asked: not a cause.
      if (end_by_ && end_by_->passed()) {
        failure.signal = 0;
        failure.code = ErrorCode::peer_lost;
        failure.message = "was ended with the others";
      }
    } else {
      failure.message = fmt::format("ended with code {}", WEXITSTATUS(end.status));
    }
    result_.failures.push_back(std::move(failure));
  }

  /// Says it once of each worker.
  void name_slow_workers() {
    std::vector<double> seconds;
    for (const WorkerSlot& slot : launch_.run.control.slots()) {
      // The first steps touch memory for the first time and say little.
      const bool settled = slot.step.load(std::memory_order_relaxed) >= kSettledStep;
      seconds.push_back(settled ? slot.step_seconds.load(std::memory_order_relaxed) : 0);
    }
    for (const SlowWorker& slow : slow_workers(seconds)) {
      if (named_slow_.insert(slow.rank).second) launch_.progress.say(describe(slow));
    }
  }

  std::size_t live_workers() const { return launch_.run.control.slots().size() - lost_workers_; }

  const Launch& launch_;
  SignalWatch signals_;
  ChildProcesses children_;
  LaunchResult result_;
  std::size_t lost_workers_ = 0;
  std::set<int> named_slow_;
  std::optional<Deadline> end_by_;
  std::int64_t oom_before_ = out_of_memory_kills();
};

}  // namespace

LaunchResult launch_workers(const Launch& launch) {
  return Watcher(launch).watch();
}

}  // namespace cohort
