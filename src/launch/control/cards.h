#pragma once

#include <cohort/error.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/activity.h"
#include "base/phases.h"
#include "cluster/server_report.h"
#include "launch/control/piece_losses.h"

// The reports of the control channel (control_block.h): what each task shows of itself, on a card
// that it alone writes while it runs. Before a task is started, and after it was lost, the card is
// the launcher's, which clears it (Tasks::clear_cards, Groups::lost).
//
// Two kinds of fields. Atomic ones may be read at any time and say what was true a moment ago;
// those that belong together are stored in the order in which a reader needs them, the one that
// announces the others last (`awaited_generation` after `ready_step`). Plain ones (results, texts
// of errors) are read once an atomic one says that they are there, or the process has ended.
//
// A worker of another launcher has no task here: its card is filled by the chief, with what came
// through the store (train/run/reports.h).

namespace cohort::launch {

/// Copies as much of `text` as fits, always terminated.
inline void put_text(std::span<char> target, const std::string& text) {
  const std::size_t length = std::min(text.size(), target.size() - 1);
  std::copy_n(text.begin(), length, target.begin());
  target[length] = '\0';
}

/// Who a task is, for the summary.
struct TaskIdentity {
  std::int64_t pid = 0;
  std::int64_t peak_rss_bytes = 0;  ///< Of its processes so far, as the kernel counts it.
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
  std::uint64_t left_out = 0;  ///< See Traffic.
  std::array<double, kPhaseNames.size()> phase_seconds{};
  std::int64_t own_steps = 0;  ///< That this worker took part in.
  double step_seconds = 0;     ///< That it was busy with one of them, on average.
  TaskIdentity task;
  std::array<char, 16> engine{};
  std::array<char, 256> strategy{};  ///< StrategyReport::words.
};

/// Of a worker or a server, which is only `starting`, `training` (it serves), `done` or `failed`.
/// `absent`: no process was started for it. `saving`: it saves because the run shall end, or is
/// over. `paused`: it waits for the next group of workers. `done`: it has trained to the end, or
/// was not needed. `done` and `failed` are the last a process says; its successor begins at
/// `starting`, which the launcher sets for it.
enum class TaskState : int { absent, starting, training, validating, saving, paused, done, failed };

/// What a task reports at any time.
struct TaskCard {
  std::atomic<TaskState> state{TaskState::absent};
  std::atomic<std::uint64_t> heartbeats{0};  ///< Raised by a living task all the time.

  /// Defined once `state` is failed. A worker that left its group by itself and waits for the next
  /// one (`awaited_generation`) has the text of its reason in `error`, too.
  int error_code = 0;   ///< An ErrorCode.
  int error_rank = -1;  ///< The rank the error is about; -1: none.
  std::array<char, 2048> error{};

  /// Puts the error there, then the state.
  void fail_with(const Error& problem) {
    error_code = static_cast<int>(problem.code());
    error_rank = problem.rank().value_or(-1);
    put_text(error, problem.what());
    state.store(TaskState::failed);
  }
};

/// What a worker reports; by its number, which it keeps in all groups.
///
/// The process that takes the place of a lost one has its number, and so its card. What is told of
/// both together (samples, peak memory) goes on there; what is of one process begins anew (see
/// Tasks::clear_cards).
struct WorkerCard : TaskCard {
  /// The group it waits for, having left the one before or being new; 0: none. With it, the steps
  /// its model has seen, or -1 where it has no state.
  std::atomic<std::int64_t> awaited_generation{0};
  std::atomic<std::int64_t> ready_step{-1};
  std::atomic<bool> finished{false};  ///< It has trained to the end.
  Activity activity;
  std::atomic<std::int64_t> heading_for{0};  ///< See ControlBlock::may_head_for.

  std::atomic<std::int64_t> step{0};     ///< Steps done.
  std::atomic<std::int64_t> samples{0};  ///< Its own; those of processes it took over from too.
  std::atomic<double> epoch{0};          ///< Epochs done, with fraction.
  std::atomic<double> loss{0};
  std::atomic<double> own_samples_per_second{0};
  std::atomic<double> samples_per_second{0};  ///< Of all workers, as this one sees it.
  std::atomic<double> step_seconds{0};        ///< That it was busy with a step, lately.
  std::atomic<double> longest_step{0};        ///< In seconds, with all waiting.
  std::atomic<double> staleness{-1};          ///< Of the last logged step; -1: there is none.
  /// Where steps are handed out: a step to be logged that it makes a piece of; see DueLosses.
  std::atomic<std::int64_t> held_step{kHoldsNothing};

  /// `task` is filled in when the process starts, the rest when the worker comes to a pause that it
  /// was asked for, to the end of the training, or to a loss that is not finite.
  WorkerResult result;
};

/// What a parameter server reports.
struct ServerCard : TaskCard {
  TaskIdentity task;
  /// Defined once `state` is done. Where the servers' memory outlives them it knows better.
  cluster::ServerReport report;
};

}  // namespace cohort::launch
