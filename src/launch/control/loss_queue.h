#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace cohort {

/// What a worker says of a piece of a step that it has made, where steps are handed out in pieces.
struct PieceLoss {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::int64_t step;         ///< Steps done with it: the first is 1.
  std::int64_t part;         ///< Of the step's batch.
  std::int64_t rows;         ///< Of the piece; may be 0.
  std::int64_t global_rows;  ///< Of all pieces of the step.
  double loss;               ///< Mean over the piece's rows.
  double gradient_norm;
  double staleness;           ///< kNone where the strategy has none.
  double consensus_distance;  ///< Likewise.
};

/// What a worker has to say to the chief about its pieces, in memory that outlives both. One puts,
/// one takes, nobody waits, and either may die at any instruction: what was put stays until it is
/// released, so that the next chief finds what the last one had not written yet. Zeroed memory is
/// an empty one.
///
/// Positions only grow; a piece is at its position modulo kRoom. Whoever puts into an empty queue
/// begins again at its front, so that one that is emptied all the time touches little memory.
class LossQueue {
 public:
  static constexpr std::uint64_t kRoom = 4096;

  static std::size_t bytes_needed();
  explicit LossQueue(std::byte* memory) : memory_(memory) {}

  /// False where there is no room left, because nobody has taken anything for very long.
  bool put(const PieceLoss& piece);

  /// For who takes: positions from begin() on and before end() have a piece.
  std::uint64_t begin() const;
  std::uint64_t end() const { return head().end.load(std::memory_order_acquire); }
  const PieceLoss& at(std::uint64_t position) const { return pieces()[position % kRoom]; }
  /// Forgets all before `position`.
  void release(std::uint64_t position) {
    head().released.store(position, std::memory_order_release);
  }

 private:
  struct Head {
    std::atomic<std::uint64_t> start;     ///< Nothing before it is a piece,
    std::atomic<std::uint64_t> end;       ///< nor is anything from here on.
    std::atomic<std::uint64_t> released;  ///< By who takes.
  };
  static constexpr std::size_t kHeadBytes = 64;

  Head& head() const { return *reinterpret_cast<Head*>(memory_); }
  PieceLoss* pieces() const { return reinterpret_cast<PieceLoss*>(memory_ + kHeadBytes); }

  std::byte* memory_;
};

}  // namespace cohort
