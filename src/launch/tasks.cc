#include "launch/tasks.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/fail.h"
#include "cluster/host_id.h"
#include "cluster/task_name.h"
#include "os/out_of_memory.h"

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;

// When this process itself was stopped for longer, nobody's silence means anything.
constexpr auto kOwnSilence = 2s;

bool is_done(const TaskCard& card) {
  return card.state.load() == TaskState::done;
}

}  // namespace

Tasks::Tasks(Options options)
    : options_(std::move(options)), oom_kills_(os::out_of_memory_kills()) {}

/// The card whose heartbeats are the process'. Of threads, that of the first worker.
TaskCard& Tasks::card_of(const ProcessPlan& plan) const {
  const ControlBlock& control = options_.control;
  if (plan.workers.empty()) return control.server(plan.servers.front());
  return control.card(plan.workers.front());
}

// What a task of the same number has said before must not be taken for what the new one says.
// Counts that go on (steps, samples, results) stay. The state comes last: from then on the card is
// the new task's.
void Tasks::clear_cards(const ProcessPlan& plan) const {
  for (const int worker : plan.workers) {
    WorkerCard& card = options_.control.card(worker);
    card.awaited_generation.store(0);
    card.ready_step.store(-1);
    options_.control.take_back(worker);
    card.finished.store(false);
    card.activity.clear();
    card.heading_for.store(0);
    card.own_samples_per_second.store(0);
    card.state.store(TaskState::starting);
  }
  for (const int server : plan.servers) {
    options_.control.server(server).state.store(TaskState::starting);
  }
}

void Tasks::start(const ProcessPlan& plan) {
  clear_cards(plan);
  options_.processes.start(plan);
  tasks_.push_back({.plan = plan, .pulse = Pulse(Clock::now())});
}

bool Tasks::ended_well(const TaskCard& card) const {
  return is_done(card) || (ended_all_ && card.state.load() != TaskState::failed);
}

std::vector<Tasks::End> Tasks::reap() {
  std::vector<End> ends;
  for (const Processes::End& end : options_.processes.reap()) {
    const ProcessPlan& plan = tasks_[end.index].plan;
    End& told = ends.emplace_back(End{.plan = plan, .pid = end.pid});
    for (const int worker : plan.workers) {
      WorkerCard& card = options_.control.card(worker);
      card.result.task.peak_rss_bytes =
          std::max(card.result.task.peak_rss_bytes, end.peak_rss_bytes);
      told.done = told.done && is_done(card);
      if (ended_well(card)) continue;
      TaskFailure failure = describe_end(card, end);
      failure.number = worker;
      failure.step = card.step.load();
      told.failures.push_back(std::move(failure));
    }
    for (const int server : plan.servers) {
      ServerCard& card = options_.control.server(server);
      card.task.peak_rss_bytes = std::max(card.task.peak_rss_bytes, end.peak_rss_bytes);
      told.done = told.done && is_done(card);
      if (ended_well(card)) continue;
      TaskFailure failure = describe_end(card, end);
      failure.role = cluster::kServerRole;
      failure.number = server;
      told.failures.push_back(std::move(failure));
    }
  }
  oom_kills_ = os::out_of_memory_kills();
  return ends;
}

// What the task says of itself is nearest to the cause; then what this process knows because it
// ended the task; then what the kernel says.
TaskFailure Tasks::describe_end(const TaskCard& card, const Processes::End& end) const {
  const Task& task = tasks_[end.index];
  TaskFailure failure;
  failure.pid = end.pid;
  failure.host = cluster::host_name();
  failure.log = options_.log_of(task.plan).string();
  if (card.state.load() == TaskState::failed) {
    failure.code = static_cast<ErrorCode>(card.error_code);
    failure.message = card.error.data();
  } else if (!task.ended_because.empty()) {
    failure.code = ErrorCode::timeout;
    failure.message = task.ended_because;
    failure.was_silent = true;
  } else if (WIFSIGNALED(end.status)) {
    failure.signal = WTERMSIG(end.status);
    failure.out_of_memory = failure.signal == SIGKILL && os::out_of_memory_kills() > oom_kills_;
  } else {
    failure.message = fmt::format("ended with code {}", WEXITSTATUS(end.status));
  }
  return failure;
}

// Where this process was stopped itself (a debugger, a suspended machine), all others look silent:
// their time begins anew.
std::vector<std::string> Tasks::end_silent(Clock::time_point now) {
  const bool was_stopped = now - std::exchange(last_look_, now) > kOwnSilence;
  std::vector<std::string> words;
  for (std::size_t index = 0; index < tasks_.size(); ++index) {
    if (!options_.processes.is_running(index)) continue;
    if (was_stopped) tasks_[index].pulse = Pulse(now);
    if (auto word = look_at(index, now)) words.push_back(std::move(*word));
  }
  return words;
}

std::optional<std::string> Tasks::look_at(std::size_t index, Clock::time_point now) {
  Task& task = tasks_[index];
  const auto silence = task.pulse.silence(card_of(task.plan).heartbeats.load(), now);
  const double seconds = std::chrono::duration<double>(silence).count();
  const ClusterOptions& cluster = options_.cluster;
  if (seconds >= cluster.silence_lost_seconds && task.ended_because.empty()) {
    task.ended_because = fmt::format("gave no sign of life for {:.0f} s and was ended",
                                     cluster.silence_lost_seconds);
    options_.processes.kill(index);
  } else if (seconds >= cluster.silence_warn_seconds && !task.warned) {
    task.warned = true;
    return fmt::format(
        "{} (pid {}) has given no sign of life for {:.0f} s; after {:.0f} s it is "
        "declared lost",
        task_name(task.plan), options_.processes.pid(index), seconds, cluster.silence_lost_seconds);
  } else if (seconds < 1 && std::exchange(task.warned, false)) {
    return fmt::format("{} (pid {}) is back", task_name(task.plan), options_.processes.pid(index));
  }
  return std::nullopt;
}

void Tasks::end_worker(int worker, const std::string& reason) {
  for (std::size_t index = 0; index < tasks_.size(); ++index) {
    const bool is_it = std::ranges::count(tasks_[index].plan.workers, worker) > 0;
    if (!is_it || !options_.processes.is_running(index)) continue;
    if (tasks_[index].ended_because.empty()) tasks_[index].ended_because = reason;
    options_.processes.kill(index);
  }
}

void Tasks::end_all() {
  ended_all_ = true;
  for (std::size_t index = 0; index < tasks_.size(); ++index) options_.processes.kill(index);
}

std::size_t Tasks::running_servers() const {
  std::size_t count = 0;
  for (std::size_t index = 0; index < tasks_.size(); ++index) {
    if (tasks_[index].plan.workers.empty() && options_.processes.is_running(index)) ++count;
  }
  return count;
}

bool Tasks::runs_worker(int worker) const {
  for (std::size_t index = 0; index < tasks_.size(); ++index) {
    const bool is_it = std::ranges::count(tasks_[index].plan.workers, worker) > 0;
    if (is_it && options_.processes.is_running(index)) return true;
  }
  return false;
}

std::vector<RunStatus::Task> Tasks::list(const cluster::View& view) const {
  std::vector<RunStatus::Task> all;
  for (std::size_t index = 0; index < tasks_.size(); ++index) {
    if (!options_.processes.is_running(index)) continue;
    const std::int64_t pid = options_.processes.pid(index);
    for (const int worker : tasks_[index].plan.workers) {
      all.push_back({.role = cluster::kWorkerRole,
                     .number = worker,
                     .rank = view.rank_of(worker),
                     .pid = pid});
    }
    for (const int server : tasks_[index].plan.servers) {
      all.push_back({.role = cluster::kServerRole, .number = server, .rank = {}, .pid = pid});
    }
  }
  return all;
}

}  // namespace cohort::launch
