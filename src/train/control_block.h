#pragma once

#include <cohort/error.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/phases.h"

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

enum class WorkerState : int { starting, training, validating, done, failed };

/// What the launcher may see of a task at any time.
struct TaskSlot {
  std::atomic<WorkerState> state{WorkerState::starting};

  /// Defined once `state` is failed.
  int error_code = 0;  ///< An ErrorCode.
  int error_rank = -1;
  std::array<char, 2048> error{};

  void fail_with(const Error& error);
};

struct WorkerSlot : TaskSlot {
  std::atomic<std::int64_t> step{0};
  std::atomic<double> epoch{0};
  std::atomic<double> loss{0};
  std::atomic<double> own_samples_per_second{0};
  std::atomic<double> samples_per_second{0};  ///< Of all workers, as this one sees it.
  std::atomic<double> step_seconds{0};        ///< That it was busy with a step, lately.
  std::atomic<double> staleness{-1};          ///< Of the last logged step; -1: there is none.

  WorkerResult result;  ///< Defined once `state` is done.
};

/// What a parameter server reports at its end.
struct ServerReport {
  /// Pushes by their staleness; the last place has all above.
  static constexpr std::size_t kStalenessPlaces = 130;

  std::uint64_t version = 0;
  std::uint64_t applied = 0;
  std::uint64_t dropped = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t missing = 0;
  std::uint64_t staleness_max = 0;
  double staleness_sum = 0;
  std::array<std::uint64_t, kStalenessPlaces> staleness{};
};

struct ServerSlot : TaskSlot {
  TaskIdentity task;
  ServerReport report;  ///< Defined once `state` is done.
};

/// Memory that a launcher and its workers share, be they processes or threads: how far everybody
/// is, and whether to stop. Made before the workers are started.
class ControlBlock {
 public:
  ControlBlock(int world, int servers);
  ~ControlBlock();
  ControlBlock(const ControlBlock&) = delete;
  ControlBlock& operator=(const ControlBlock&) = delete;

  std::span<WorkerSlot> slots() const { return slots_; }
  WorkerSlot& slot(int rank) const { return slots_[static_cast<std::size_t>(rank)]; }

  std::span<ServerSlot> servers() const { return servers_; }
  ServerSlot& server(int index) const { return servers_[static_cast<std::size_t>(index)]; }

  /// Asks all workers to stop together after the step they are in.
  void request_stop() { header_->stop.store(true); }
  bool stop_requested() const { return header_->stop.load(std::memory_order_relaxed); }

  std::int64_t total_steps() const { return header_->total_steps.load(); }
  void set_total_steps(std::int64_t steps) { header_->total_steps.store(steps); }

 private:
  struct Header {
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> total_steps{0};
  };

  std::size_t bytes_;
  Header* header_;
  std::span<WorkerSlot> slots_;
  std::span<ServerSlot> servers_;
};

/// Copies as much of `text` as fits, always terminated.
void put_text(std::span<char> target, const std::string& text);

}  // namespace cohort
