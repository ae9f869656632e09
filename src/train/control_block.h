#pragma once

#include <cohort/error.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/phases.h"

namespace cohort {

/// What a worker reports at its end. Plain numbers, so that they can be left in shared memory.
struct WorkerResult {
  std::int64_t steps = 0;
  std::int64_t samples = 0;  ///< Of all workers.
  double epochs = 0;
  double samples_per_second = 0;  ///< 0: too few steps to tell.
  double validation_loss = 0;
  double accuracy = 0;
  bool has_validation = false;
  bool has_accuracy = false;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::array<double, kPhaseNames.size()> phase_seconds{};
  std::int64_t pid = 0;
  std::int64_t peak_rss_bytes = 0;
  std::array<char, 64> host{};
  std::array<char, 16> engine{};
  std::array<char, 256> strategy{};  ///< Strategy::describe().
};

enum class WorkerState : int { starting, training, validating, done, failed };

/// One worker's place in the control block: what the launcher may see of it at any time.
struct WorkerSlot {
  std::atomic<WorkerState> state{WorkerState::starting};
  std::atomic<std::int64_t> step{0};
  std::atomic<double> epoch{0};
  std::atomic<double> loss{0};
  std::atomic<double> samples_per_second{0};

  /// Defined once `state` is done or failed.
  WorkerResult result;
  int error_code = 0;  ///< An ErrorCode.
  int error_rank = -1;
  std::array<char, 2048> error{};

  void fail_with(const Error& error);
};

/// Memory that a launcher and its workers share, be they processes or threads: how far everybody
/// is, and whether to stop. Made before the workers are started.
class ControlBlock {
 public:
  explicit ControlBlock(int world);
  ~ControlBlock();
  ControlBlock(const ControlBlock&) = delete;
  ControlBlock& operator=(const ControlBlock&) = delete;

  std::span<WorkerSlot> slots() const { return slots_; }
  WorkerSlot& slot(int rank) const { return slots_[static_cast<std::size_t>(rank)]; }

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
};

/// Copies as much of `text` as fits, always terminated.
void put_text(std::span<char> target, const std::string& text);

}  // namespace cohort
