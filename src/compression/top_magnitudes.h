#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cohort::compression {

/// Finds the values of largest magnitude in one pass over memory: a sample says what magnitude most
/// of them will have, the pass collects all that have it, and only among those it is sorted out.
/// Where the sample misleads (so many equal values, so few that count) the answer is the same, but
/// takes longer.
/// Not thread-safe.
class TopMagnitudes {
 public:
  /// The indices, ascending, of the `wanted` values of largest magnitude; of equal ones the first
  /// are taken, NaN counts as largest. `wanted` is at most values.size(), which fits 32 bits.
  /// Valid until the next call.
  std::span<const std::uint32_t> select(std::span<const float> values, std::size_t wanted);

 private:
  std::uint32_t likely_threshold(std::span<const float> values, std::size_t wanted);
  void collect(std::span<const float> values, std::uint32_t threshold);
  void keep_largest(std::span<const float> values, std::size_t wanted);

  // Kept between calls, to spare the allocations.
  std::vector<std::uint32_t> candidates_;  // Indices, ascending; room for more than are used.
  std::size_t candidate_count_ = 0;
  std::vector<std::uint32_t> magnitudes_;  // Of a sample, or of the candidates.
};

}  // namespace cohort::compression
