#pragma once

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "cluster/membership.h"
#include "launch/control/control_block.h"
#include "launch/processes.h"
#include "launch/requests.h"

// Processes and requests for tests of the launcher. A process is a thread that does in the control
// block what a worker or server of a run does there, and trains nothing. Before every step it asks
// the test what becomes of it (FatePlan), so that a test can have two processes die at once, or one
// fall silent while another is being replaced, again and again in the same way.

namespace cohort::launch {

/// What a test plans for its processes. The `life`-th process (from 0) of a worker is about to make
/// step `step` (from 1) in `view`; step 0 is before it has a group. One of a server is asked again
/// and again while it serves, with the step that the furthest worker has made. Who waits is asked
/// again, unless the launcher wants it to leave its group.
enum class Fate { lives, waits, dies, falls_silent };
struct Moment {
  int worker = -1;  ///< Or
  int server = -1;
  int life = 0;
  std::int64_t step = 0;
  cluster::View view = {};
};
using FatePlan = std::function<Fate(const Moment& moment)>;

/// What all processes of a test share.
struct InventedWorld {
  ControlBlock& control;
  std::int64_t steps = 100;
  bool lockstep = true;  ///< Nobody makes a step before all others have made the one before.
  FatePlan plan;
  /// Asked before every start: whether no process can be made.
  std::function<bool(const ProcessPlan& process)> no_process = {};
  std::function<void(const cluster::View& view)> joined =
      {};                              ///< Called by every worker of a group.
  std::atomic<int>* reaped = nullptr;  ///< Counts the ends that the launcher has seen.
};

/// A process of a test: a thread that shows its launcher what a process does, and meets with what
/// the test has planned for it.
class InventedTask {
 public:
  InventedTask(const InventedWorld& world, TaskCard& card) : world_(world), task_(card) {}
  virtual ~InventedTask() = default;

  /// Its status, as waitpid reports it.
  int live(const std::stop_token& killed) {
    try {
      do_all(killed);
    } catch (const Death&) {
      return SIGKILL;
    }
    task_.state.store(TaskState::done);
    return 0;
  }

 protected:
  struct Death {};

  virtual void do_all(const std::stop_token& killed) = 0;

  /// What a process does all the time.
  void breathe(const std::stop_token& killed) {
    if (killed.stop_requested()) throw Death();
    task_.heartbeats.fetch_add(1);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }

  void meet_fate(const Moment& moment, const std::stop_token& killed) {
    Fate fate = world_.plan(moment);
    for (; fate == Fate::waits && !must_leave(moment.view); fate = world_.plan(moment)) {
      breathe(killed);
    }
    if (fate == Fate::dies) throw Death();
    while (fate == Fate::falls_silent && !killed.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  bool must_leave(const cluster::View& view) const {
    return view.generation > 0 && (world_.control.pause_requested(view.generation) ||
                                   world_.control.is_broken(view.generation));
  }

  InventedWorld world_;
  TaskCard& task_;
};

/// Serves the workers of one group until the launcher ends it.
class InventedServer : public InventedTask {
 public:
  InventedServer(const InventedWorld& world, int server, int life, std::int64_t generation)
      : InventedTask(world, world.control.server(server)),
        server_(server),
        life_(life),
        generation_(generation) {}

 private:
  void do_all(const std::stop_token& killed) override {
    task_.state.store(TaskState::training);
    while (!world_.control.servers_shall_end(generation_)) {
      breathe(killed);
      std::int64_t furthest = 0;
      for (const WorkerCard& card : world_.control.cards()) {
        furthest = std::max(furthest, card.step.load());
      }
      meet_fate({.server = server_, .life = life_, .step = furthest}, killed);
    }
  }

  int server_;
  int life_;
  std::int64_t generation_;
};

class InventedWorker : public InventedTask {
 public:
  InventedWorker(const InventedWorld& world, int worker, int life, std::int64_t first_generation)
      : InventedTask(world, world.control.card(worker)),
        card_(world.control.card(worker)),
        worker_(worker),
        life_(life),
        generation_(first_generation) {}

 private:
  void do_all(const std::stop_token& killed) override {
    while (const auto view = next_view(killed)) train(*view, killed);
  }

  /// The next group it is in; none when there is nothing left to do.
  std::optional<cluster::View> next_view(const std::stop_token& killed) {
    if (card_.finished.load()) return std::nullopt;
    meet_fate({.worker = worker_, .life = life_}, killed);
    for (;;) {
      card_.awaited_generation.store(generation_);
      breathe(killed);
      const cluster::View view = world_.control.view().read();
      if (view.generation < generation_) continue;
      if (view.rank_of(worker_)) return view;
      if (view.workers.empty() || world_.control.is_sent_away(worker_)) return std::nullopt;
      generation_ = view.generation + 1;  // It was formed before this worker was ready.
    }
  }

  void train(const cluster::View& view, const std::stop_token& killed) {
    card_.awaited_generation.store(0);
    card_.state.store(TaskState::training);
    if (world_.joined) world_.joined(view);
    const bool chief = view.rank_of(worker_) == 0;
    // All begin with what the chief has.
    steps_ = std::max<std::int64_t>(world_.control.card(view.workers.front()).ready_step.load(), 0);
    card_.step.store(steps_);
    if (view.closing) {
      if (chief) world_.control.set_saved();
    } else {
      make_steps(view, chief, killed);
    }
    generation_ = view.generation + 1;
    card_.ready_step.store(steps_);
    card_.state.store(TaskState::paused);
  }

  void make_steps(const cluster::View& view, bool chief, const std::stop_token& killed) {
    while (steps_ < world_.steps) {
      meet_fate({.worker = worker_, .life = life_, .step = steps_ + 1, .view = view}, killed);
      do {
        breathe(killed);
        if (must_leave(view)) return;
      } while (world_.lockstep && !all_have_made(steps_, view));
      if (!world_.control.may_head_for(card_, steps_ + 1)) {
        if (chief) world_.control.set_saved();
        return;
      }
      card_.step.store(++steps_);
    }
    card_.finished.store(true);
  }

  bool all_have_made(std::int64_t steps, const cluster::View& view) const {
    return std::ranges::all_of(
        view.workers, [&](int worker) { return world_.control.card(worker).step.load() >= steps; });
  }

  WorkerCard& card_;
  int worker_;
  int life_;
  std::int64_t generation_;
  std::int64_t steps_ = -1;  // -1: it has no state.
};

/// Processes that are threads with an InventedTask each.
class InventedProcesses : public Processes {
 public:
  explicit InventedProcesses(InventedWorld world) : world_(std::move(world)) {}

  void start(const ProcessPlan& plan) override {
    if (world_.no_process && world_.no_process(plan)) {
      fail(ErrorCode::io, "cannot start a process: it was planned so");
    }
    const std::size_t index = threads_.size();
    running_.push_back(true);
    threads_.emplace_back([this, index,
                           task = std::shared_ptr(make_task(plan))](const std::stop_token& killed) {
      const int status = task->live(killed);
      const std::lock_guard lock(mutex_);
      ended_.push_back({.index = index, .pid = static_cast<pid_t>(pid(index)), .status = status});
    });
  }

  std::vector<End> reap() override {
    const std::lock_guard lock(mutex_);
    for (const End& end : ended_) running_[end.index] = false;
    if (world_.reaped != nullptr) *world_.reaped += static_cast<int>(ended_.size());
    return std::exchange(ended_, {});
  }

  std::size_t running() const override {
    return static_cast<std::size_t>(std::ranges::count(running_, true));
  }
  bool is_running(std::size_t index) const override { return running_[index]; }
  std::int64_t pid(std::size_t index) const override {
    return 1000 + static_cast<std::int64_t>(index);
  }
  void kill(std::size_t index) override { threads_[index].request_stop(); }

  int started(int worker) const { return worker_lives_.at(worker); }
  int started_server(int server) const { return server_lives_.at(server); }

 private:
  std::unique_ptr<InventedTask> make_task(const ProcessPlan& plan) {
    if (plan.workers.empty()) {
      const int server = plan.servers.front();
      return std::make_unique<InventedServer>(world_, server, server_lives_[server]++,
                                              plan.generation);
    }
    const int worker = plan.workers.front();
    return std::make_unique<InventedWorker>(world_, worker, worker_lives_[worker]++,
                                            plan.generation);
  }

  InventedWorld world_;
  std::map<int, int> worker_lives_;
  std::map<int, int> server_lives_;
  std::vector<bool> running_;  // Only the launcher's thread looks at it.
  std::mutex mutex_;
  std::vector<End> ended_;
  std::vector<std::jthread> threads_;  // Last: they end before what they use goes.
};

/// Requests that a test makes, from any thread.
class InventedRequests : public Requests {
 public:
  void ask(const RunRequest& request) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(request);
  }

  std::optional<RunRequest> wait(std::chrono::milliseconds) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // The launcher's tick.
    const std::lock_guard lock(mutex_);
    if (asked_.empty()) return std::nullopt;
    const RunRequest next = asked_.front();
    asked_.pop_front();
    return next;
  }

  void answer(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    answers_.push_back(text);
  }

  std::vector<std::string> answers() {
    const std::lock_guard lock(mutex_);
    return answers_;
  }

 private:
  std::mutex mutex_;
  std::deque<RunRequest> asked_;
  std::vector<std::string> answers_;
};

}  // namespace cohort::launch
