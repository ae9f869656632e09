#pragma once

#include <cohort/error.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "base/activity.h"
#include "base/phases.h"
#include "launch/control/due_losses.h"
#include "server/push_counts.h"

namespace cohort {

struct TaskIdentity {
  std::int64_t pid = 0;
  std::int64_t peak_rss_bytes = 0;
  std::array<char, 64> host{};
};

/// What a worker reports at its end. Plain numbers, so that they can be left in shared memory.
struct WorkerResult {
  std::int64_t steps = 0;
  std::int64_t samples = 0;  ///< Its own.
  double epochs = 0;
  double samples_per_second = 0;  ///< Its own; 0: too few steps to tell.
  double validation_loss = 0;
  double accuracy = 0;
  bool has_validation = false;
  bool has_accuracy = false;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::array<double, kPhaseNames.size()> phase_seconds{};
  std::int64_t own_steps = 0;  ///< That this worker took part in.
  double step_seconds = 0;     ///< That it was busy with one of them, on average.
  TaskIdentity task;
  std::array<char, 16> engine{};
  std::array<char, 256> strategy{};  ///< Strategy::describe().
};

/// `absent`: no process was started for it. `saving`: it saves because the run shall end. `paused`:
/// it waits for the next group of workers. `done`: it has trained to the end, or was not needed.
enum class WorkerState : int {
  absent,
  starting,
  training,
  validating,
  saving,
  paused,
  done,
  failed
};

/// What the launcher may see of a task at any time.
struct TaskSlot {
  std::atomic<WorkerState> state{WorkerState::absent};
  std::atomic<std::uint64_t> heartbeats{0};  ///< Raised by a living task all the time.

  /// Defined once `state` is failed.
  int error_code = 0;  ///< An ErrorCode.
  int error_rank = -1;
  std::array<char, 2048> error{};

  void fail_with(const Error& error);
};

/// By the worker's number, which it keeps in all groups.
struct WorkerSlot : TaskSlot {
  /// The group it waits for, having left the one before or being new; 0: none. With it, the steps
  /// its model has seen, or -1 where it has no state.
  std::atomic<std::int64_t> awaited_epoch{0};
  std::atomic<std::int64_t> ready_step{-1};
  std::atomic<bool> sent_away{false};  ///< By the launcher: there will be no group with it.
  std::atomic<bool> finished{false};   ///< It has trained to the end.
  Activity activity;
  std::atomic<std::int64_t> heading_for{0};  ///< See ControlBlock::may_head_for.

  std::atomic<std::int64_t> step{0};
  std::atomic<std::int64_t> samples{0};  ///< Its own; those of processes it took over from too.
  std::atomic<double> epoch{0};
  std::atomic<double> loss{0};
  std::atomic<double> own_samples_per_second{0};
  std::atomic<double> samples_per_second{0};  ///< Of all workers, as this one sees it.
  std::atomic<double> step_seconds{0};        ///< That it was busy with a step, lately.
  std::atomic<double> longest_step{0};        ///< In seconds, with all waiting.
  std::atomic<double> staleness{-1};          ///< Of the last logged step; -1: there is none.
  /// Where steps are handed out: a step to be logged that it makes a piece of; see DueLosses.
  std::atomic<std::int64_t> held_step{kHoldsNothing};

  WorkerResult result;  ///< Defined once `state` is done.
};

/// What a parameter server reports.
struct ServerReport {
  std::uint64_t version = 0;
  PushCounts counts;
};

struct ServerSlot : TaskSlot {
  TaskIdentity task;
  /// Defined once `state` is done. Where the servers' memory outlives them it knows better.
  ServerReport report;
};

/// Memory that a launcher and its workers share, be they processes or threads: how far everybody
/// is, and whether to stop. Made before the workers are started, with room for those that may come
/// later.
class ControlBlock {
 public:
  ControlBlock(int max_workers, int servers);
  ~ControlBlock();
  ControlBlock(const ControlBlock&) = delete;
  ControlBlock& operator=(const ControlBlock&) = delete;

  std::span<WorkerSlot> slots() const { return slots_; }
  WorkerSlot& slot(int rank) const { return slots_[static_cast<std::size_t>(rank)]; }

  std::span<ServerSlot> servers() const { return servers_; }
  ServerSlot& server(int index) const { return servers_[static_cast<std::size_t>(index)]; }

  /// Asks all workers to stop together after the step they are in, for good.
  void request_stop() { header_->stop.store(true); }
  bool stop_requested() const { return header_->stop.load(std::memory_order_relaxed); }

  /// Workers that make their steps alone and come together only now and then (averaging) must
  /// still stop after the same step, without asking each other, and soon. So before each step such
  /// a worker shows how many steps it will have done then, and looks whether there is a stop: with
  /// one the launcher, which sees what all have shown, has chosen the furthest of them. Who showed
  /// its step too late to be seen finds the stop and waits for that choice; so nobody goes further.
  ///
  /// True where the worker may make the step that brings it to `steps`.
  bool may_head_for(WorkerSlot& slot, std::int64_t steps) const;

  /// The launcher's part, right after request_stop(): what the furthest of these workers has shown,
  /// and the choice, which is that or later. Where the launcher does not see all workers of the
  /// group it is kNoCommonStep: they stop when they come together.
  static constexpr std::int64_t kNoCommonStep = std::numeric_limits<std::int64_t>::max();
  std::int64_t furthest_step(std::span<const int> workers) const;
  void set_last_step(std::int64_t steps) { header_->last_step.store(steps); }

  /// The same as request_stop() for the workers of this group (and earlier ones), which then wait
  /// for the next.
  void request_pause(std::int64_t epoch) { header_->pause_epoch.store(epoch); }
  bool pause_requested(std::int64_t epoch) const {
    return header_->pause_epoch.load(std::memory_order_relaxed) >= epoch;
  }

  /// A task of this group is lost: nobody waits any longer for it to appear.
  void break_group(std::int64_t epoch) {
    // Workers break theirs too, and must not mend a later one.
    std::int64_t broken = header_->broken_epoch.load();
    while (broken < epoch && !header_->broken_epoch.compare_exchange_weak(broken, epoch)) {
    }
  }
  bool is_broken(std::int64_t epoch) const {
    return header_->broken_epoch.load(std::memory_order_relaxed) >= epoch;
  }

  /// The chief has saved everything because the run was asked to end.
  void set_saved() { header_->saved.store(true); }
  bool is_saved() const { return header_->saved.load(); }

  /// Ends the servers of this group and earlier ones.
  void end_servers(std::int64_t epoch) { header_->servers_end_epoch.store(epoch); }
  bool servers_shall_end(std::int64_t epoch) const {
    return header_->servers_end_epoch.load(std::memory_order_relaxed) >= epoch;
  }

  /// The worker that is chief now; only the workers' progress depends on it.
  int chief() const { return header_->chief.load(std::memory_order_relaxed); }
  void set_chief(int worker) { header_->chief.store(worker); }

  /// What a worker says of pieces it has made, for the chief's log.
  LossQueue losses_of(int worker) const {
    return LossQueue(losses_ + static_cast<std::size_t>(worker) * LossQueue::bytes_needed());
  }

  /// The newest step that a chief has logged, or begun its log after; -1: there was no chief yet.
  std::int64_t logged_step() const { return header_->logged_step.load(); }
  void set_logged_step(std::int64_t step) { header_->logged_step.store(step); }

  /// The step the run began with: not 0 where it was resumed.
  std::int64_t first_step() const { return header_->first_step.load(); }
  void set_first_step(std::int64_t step) { header_->first_step.store(step); }

  std::int64_t total_steps() const { return header_->total_steps.load(); }
  void set_total_steps(std::int64_t steps) { header_->total_steps.store(steps); }

 private:
  struct Header {
    std::atomic<bool> stop{false};
    std::atomic<bool> saved{false};
    std::atomic<int> chief{0};
    std::atomic<std::int64_t> last_step{-1};  // Not chosen yet.
    std::atomic<std::int64_t> pause_epoch{0};
    std::atomic<std::int64_t> broken_epoch{0};
    std::atomic<std::int64_t> servers_end_epoch{0};
    std::atomic<std::int64_t> first_step{0};
    std::atomic<std::int64_t> logged_step{-1};
    std::atomic<std::int64_t> total_steps{0};
  };

  std::size_t bytes_;
  Header* header_;
  std::span<WorkerSlot> slots_;
  std::span<ServerSlot> servers_;
  std::byte* losses_;
};

/// Copies as much of `text` as fits, always terminated.
void put_text(std::span<char> target, const std::string& text);

}  // namespace cohort
