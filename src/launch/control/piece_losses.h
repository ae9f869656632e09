#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>

// How the chief comes to know the loss of a step whose pieces others have made.
//
// Where steps are handed out in pieces, nobody knows beforehand who makes a piece of a step that is
// *due* (shall be logged); the chief may make none. So each worker puts what it knows of such a
// piece, a PieceLoss, into a LossQueue of its own in the control block; the chief reads all queues
// and DueLosses makes one line per step of it.
//
//   worker 0 ──put──► LossQueue 0 ──┐
//   worker 1 ──put──► LossQueue 1 ──┼─► DueLosses (the chief's) ──► StepLoss, in order of steps
//   worker 2 ──put──► LossQueue 2 ──┘
//
// The queues outlive workers and chief: pieces are released only once their step is logged, so the
// next chief finds what the last one had read but not written. (The user of it all is
// train/loop/step_log.h.)

namespace cohort::launch {

/// What a worker says of a piece of a step that it has made.
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
/// released. Zeroed memory is an empty queue.
///
/// Positions only grow; a piece is at its position modulo kRoom. Whoever puts into an empty queue
/// begins again at its front, so that one that is emptied all the time touches little memory.
class LossQueue {
 public:
  static constexpr std::uint64_t kRoom = 4096;

  static std::size_t bytes_needed();
  /// Shows the queue in `memory`, which outlives it; cheap to make and to copy.
  explicit LossQueue(std::byte* memory) : memory_(memory) {}

  /// False where there is no room left, because nobody has taken anything for very long.
  bool put(const PieceLoss& piece);

  /// For who takes: positions from begin() on and before end() have a piece.
  std::uint64_t begin() const;
  std::uint64_t end() const { return head().end.load(std::memory_order_acquire); }
  const PieceLoss& at(std::uint64_t position) const { return pieces()[position % kRoom]; }
  /// Forgets all before `position`; their room may be used again from now on.
  void release(std::uint64_t position) {
    head().released.store(position, std::memory_order_release);
  }

 private:
  struct Head {
    std::atomic<std::uint64_t> start;     ///< Nothing before it is a piece,
    std::atomic<std::uint64_t> end;       ///< nor is anything from here on. Both by who puts.
    std::atomic<std::uint64_t> released;  ///< By who takes.
  };
  static constexpr std::size_t kHeadBytes = 64;

  Head& head() const { return *reinterpret_cast<Head*>(memory_); }
  PieceLoss* pieces() const { return reinterpret_cast<PieceLoss*>(memory_ + kHeadBytes); }

  std::byte* memory_;
};

/// A step by what all of its pieces say, each by its rows.
struct StepLoss {
  std::int64_t step = 0;
  double loss = 0;
  double gradient_norm = 0;
  std::optional<double> staleness = {};
  std::optional<double> consensus_distance = {};
};

/// What a worker *holds*, as far as the log is concerned (WorkerCard::held_step): the number of a
/// step that is due and that it makes a piece of; or one of these. kHoldsAny: it is just asking for
/// work and may have got anything. kHoldsNothing: nothing that is due.
constexpr std::int64_t kHoldsAny = 0;
constexpr std::int64_t kHoldsNothing = std::numeric_limits<std::int64_t>::max();

/// Makes one line for every step that is due of what its pieces say, whoever made them, in the
/// order of the steps. Pieces come in any order. A step *can be told* in one of three ways:
///
///   all of its rows are there                           nobody holds an earlier step
///   some are missing, kSomeLater later steps have come  nobody holds it or an earlier one
///   kMostLater later steps have come                    whatever anybody holds
///
/// The second is for pieces that never come: whoever made one died before it could tell, or it was
/// made before the run was resumed. The third keeps one slow worker from delaying the log for ever.
class DueLosses {
 public:
  static constexpr std::size_t kSomeLater = 8;
  static constexpr std::size_t kMostLater = 64;

  /// A piece that was made again replaces what it was before; one without rows says nothing.
  void add(const PieceLoss& piece);

  bool empty() const { return steps_.empty(); }

  /// Takes the first step if it can be told, by what the workers held before the last pieces were
  /// added; where `all` is set, whether or not it is.
  std::optional<StepLoss> next(std::span<const std::int64_t> held, bool all = false);

 private:
  using Pieces = std::map<std::int64_t, PieceLoss>;  // By their part.

  bool can_be_told(std::span<const std::int64_t> held) const;

  std::map<std::int64_t, Pieces> steps_;
};

}  // namespace cohort::launch
