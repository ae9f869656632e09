#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/work_board.h"

namespace cohort::data {

/// The order of samples, and who takes which. An *epoch* is one pass over all samples in an order
/// that is a function of (seed, epoch). It is cut into *global batches*; the last one may be
/// smaller. A global batch is cut into *micro-batches* where gradients accumulate, and each of
/// those into the workers' *slices*:
///
///   epoch          | 7 3 9 0 | 4 1 8 2 | 6 5 |         batch = 4
///   global batch   | 4 1 | 8 2 |                       accumulate = 2: two micro-batches
///   micro-batch    | 4 | 1 |                           two workers: a slice each
///
/// So N workers together see what one would, and a micro-batch holds the same samples for any
/// number of workers (batch norm looks at all of them). Everything here is arithmetic on numbers
/// that all workers know: nothing is sent, and a worker that starts anew continues at any Cursor.

/// The longest training, and the most parts that a step's batch is cut into: what can be counted
/// part by part, with room for who has taken one, in 64 bits.
inline constexpr std::int64_t kMostSteps = 10'000'000'000;
inline constexpr std::int64_t kMostParts = 4096;

/// A half-open range.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Slice&) const = default;
};

/// Part `rank` of `samples` cut into `world` contiguous parts, as even as possible: earlier ranks
/// have one more. A part may be empty.
Slice worker_slice(std::int64_t samples, int rank, int world);

/// Global batches of an epoch.
std::int64_t steps_per_epoch(std::int64_t samples, std::int64_t batch);

/// A position between two global batches; kept in checkpoints. It counts samples, so it stays
/// meaningful when the number of workers or the batch changes.
struct Cursor {
  std::int64_t epoch = 0;
  std::int64_t offset = 0;  ///< Samples of the epoch that are done, by all workers together.

  bool operator==(const Cursor&) const = default;
};

/// After so many whole steps.
Cursor cursor_after(std::int64_t steps, std::int64_t samples, std::int64_t batch);

/// The order of every epoch's samples.
class GlobalOrder {
 public:
  GlobalOrder(std::int64_t samples, std::uint64_t seed) : samples_(samples), seed_(seed) {}

  std::int64_t samples() const { return samples_; }

  /// A permutation of 0 … samples-1, by Fisher and Yates. Any number gives one; -1 is that by which
  /// validation samples are set aside.
  std::vector<std::int64_t> epoch(std::int64_t number) const;

 private:
  std::int64_t samples_;
  std::uint64_t seed_;
};

/// Which batches a worker takes.
struct BatchOptions {
  std::uint64_t seed = 0;
  std::int64_t batch = 1;  ///< Of all workers together.
  int rank = 0;
  int world = 1;
  std::int64_t accumulate = 1;  ///< Micro-batches that a global batch is cut into.
  Cursor start = {};
};

/// Where a worker's slice of a micro-batch stands.
struct BatchPlace {
  std::int64_t epoch = 0;
  std::int64_t global_rows = 0;  ///< Samples of the step: all workers, all micro-batches.
  std::int64_t micro_rows = 0;   ///< Samples of this micro-batch: all workers.
  std::int64_t first_row = 0;    ///< Where this slice begins in the global batch.
  bool last_of_step = true;      ///< The last micro-batch of its step.
  bool last_of_epoch = false;    ///< The step is the last of its epoch.
  Cursor after;                  ///< The position once the step is done.
};

/// Which samples a worker takes, slice after slice, without end. For one thread at a time.
class BatchSequence {
 public:
  struct Item {
    std::span<const std::int64_t> indices;  ///< Valid until the next call; may be empty.
    BatchPlace place;
  };

  /// Throws Error(invalid) for options that make no sense.
  BatchSequence(std::int64_t samples, const BatchOptions& options);

  Item next();

  /// Goes on with this part of the batch of this step, counted from the start of epoch 0. For
  /// workers that are handed their work: `world` is then the number of parts. Throws Error(corrupt)
  /// for a piece that there is not.
  void seek(const cluster::Claim& claim);

 private:
  void begin_epoch(std::int64_t number);

  GlobalOrder order_;
  BatchOptions options_;
  std::vector<std::int64_t> epoch_order_;  ///< Of epoch at_.epoch.
  Cursor at_;                              ///< Of the step whose slices are being taken.
  std::int64_t micro_ = 0;                 ///< The next micro-batch of that step.
};

}  // namespace cohort::data
