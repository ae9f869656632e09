#pragma once

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/store.h"
#include "cluster/view.h"
#include "launch/control/control_block.h"
#include "launch/processes.h"

namespace cohort {

/// A process of a test: a thread that does what a worker's process does as far as its launcher can
/// see it, and meets with what the test has planned for it.
class InventedWorker {
 public:
  /// What happens to the worker before it makes a step: the `life`-th process of worker `worker`
  /// (from 0) is about to make step `step` (from 1) in `view`; step 0 is before it has a group.
  /// Who waits is asked again.
  enum class Fate { lives, waits, dies, falls_silent };
  struct Moment {
    int worker = 0;
    int life = 0;
    std::int64_t step = 0;
    View view = {};
  };
  using Plan = std::function<Fate(const Moment& moment)>;

  struct World {
    ControlBlock& control;
    MemoryStore& store;
    std::int64_t steps = 100;
    bool lockstep = true;  ///< Nobody makes a step before all others have made the one before.
    Plan plan;
    std::atomic<int>* reaped = nullptr;  ///< Counts the ends that the launcher has seen.
  };

  InventedWorker(const World& world, int worker, int life, std::int64_t first_epoch)
      : world_(world),
        slot_(world.control.slot(worker)),
        worker_(worker),
        life_(life),
        epoch_(first_epoch) {}

  /// Its status, as waitpid reports it.
  int live(const std::stop_token& killed) {
    try {
      while (const auto view = next_view(killed)) train(*view, killed);
    } catch (const Death&) {
      return SIGKILL;
    }
    slot_.state.store(WorkerState::done);
    return 0;
  }

 private:
  struct Death {};

  /// What a process does all the time.
  void breathe(const std::stop_token& killed) {
    if (killed.stop_requested()) throw Death();
    slot_.heartbeats.fetch_add(1);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }

  void meet_fate(std::int64_t step, const View& view, const std::stop_token& killed) {
    const auto ask = [&] {
      return world_.plan({.worker = worker_, .life = life_, .step = step, .view = view});
    };
    Fate fate = ask();
    for (; fate == Fate::waits; fate = ask()) breathe(killed);
    if (fate == Fate::dies) throw Death();
    while (fate == Fate::falls_silent && !killed.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  /// The next group it is in; none when there is nothing left to do.
  std::optional<View> next_view(const std::stop_token& killed) {
    if (slot_.finished.load()) return std::nullopt;
    meet_fate(0, {}, killed);
    for (;;) {
      slot_.awaited_epoch.store(epoch_);
      breathe(killed);
      const auto text = world_.store.find(view_key(epoch_));
      if (!text) continue;
      const View view = view_from(*text);
      if (view.rank_of(worker_)) return view;
      if (view.workers.empty() || slot_.sent_away.load()) return std::nullopt;
      ++epoch_;  // It was formed before this worker was ready.
    }
  }

  void train(const View& view, const std::stop_token& killed) {
    slot_.awaited_epoch.store(0);
    slot_.state.store(WorkerState::training);
    const bool chief = view.rank_of(worker_) == 0;
    // All begin with what the chief has.
    steps_ = std::max<std::int64_t>(world_.control.slot(view.workers.front()).ready_step.load(), 0);
    slot_.step.store(steps_);
    if (view.closing) {
      if (chief) world_.control.set_saved();
    } else {
      make_steps(view, chief, killed);
    }
    epoch_ = view.epoch + 1;
    slot_.ready_step.store(steps_);
    slot_.state.store(WorkerState::paused);
  }

  void make_steps(const View& view, bool chief, const std::stop_token& killed) {
    while (steps_ < world_.steps) {
      meet_fate(steps_ + 1, view, killed);
      do {
        breathe(killed);
        if (must_leave(view)) return;
      } while (world_.lockstep && !all_have_made(steps_, view));
      if (!world_.control.may_head_for(slot_, steps_ + 1)) {
        if (chief) world_.control.set_saved();
        return;
      }
      slot_.step.store(++steps_);
    }
    slot_.finished.store(true);
  }

  bool must_leave(const View& view) const {
    return world_.control.pause_requested(view.epoch) || world_.control.is_broken(view.epoch);
  }

  bool all_have_made(std::int64_t steps, const View& view) const {
    return std::ranges::all_of(
        view.workers, [&](int worker) { return world_.control.slot(worker).step.load() >= steps; });
  }

  World world_;
  WorkerSlot& slot_;
  int worker_;
  int life_;
  std::int64_t epoch_;
  std::int64_t steps_ = -1;  // -1: it has no state.
};

/// Processes that are threads with an InventedWorker each.
class InventedProcesses : public Processes {
 public:
  explicit InventedProcesses(InventedWorker::World world) : world_(std::move(world)) {}

  void start(const ProcessPlan& plan) override {
    const int worker = plan.ranks.front();
    const std::size_t index = threads_.size();
    running_.push_back(true);
    threads_.emplace_back([this, index, worker, epoch = plan.epoch,
                           life = lives_[worker]++](const std::stop_token& killed) {
      const int status = InventedWorker(world_, worker, life, epoch).live(killed);
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

  int started(int worker) const { return lives_.at(worker); }

 private:
  InventedWorker::World world_;
  std::map<int, int> lives_;
  std::vector<bool> running_;  // Only the launcher's thread looks at it.
  std::mutex mutex_;
  std::vector<End> ended_;
  std::vector<std::jthread> threads_;  // Last: they end before what they use goes.
};

}  // namespace cohort
