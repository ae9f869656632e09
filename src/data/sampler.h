#pragma once

#include <cstdint>
#include <vector>

namespace cohort {

/// The order of samples, and who takes which. An *epoch* is one pass over all samples in an order
/// that is a function of (seed, epoch). It is cut into *global batches*; the last one may be
/// smaller. Every worker takes its *slice* of every global batch, so N workers together see what
/// one would.

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

class GlobalOrder {
 public:
  GlobalOrder(std::int64_t samples, std::uint64_t seed) : samples_(samples), seed_(seed) {}

  std::int64_t samples() const { return samples_; }

  /// A permutation of 0 … samples-1.
  std::vector<std::int64_t> epoch(std::int64_t number) const;

 private:
  std::int64_t samples_;
  std::uint64_t seed_;
};

}  // namespace cohort
