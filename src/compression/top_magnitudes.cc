#include "compression/top_magnitudes.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.h"
#include "compression/float_bits.h"

namespace cohort::compression {
namespace {

constexpr std::size_t kSample = 1 << 15;
constexpr std::size_t kChunk = 1 << 16;  // Candidates grow by this much room.

/// Appends the indices of [begin, end) whose magnitude reaches the threshold, without a branch that
/// could be guessed wrong, and returns how many there were. `to` has room for all.
std::size_t append_large(std::span<const float> values, std::size_t begin, std::uint32_t threshold,
                         std::span<std::uint32_t> to) {
  const float* const from = values.data();
  std::uint32_t* const out = to.data();
  std::size_t found = 0;
  for (std::size_t i = begin; i < begin + to.size(); ++i) {
    out[found] = static_cast<std::uint32_t>(i);
    found += magnitude_bits(from[i]) >= threshold ? 1 : 0;
  }
  return found;
}

/// Element `rank` of `values` when sorted from the largest; the order is lost.
std::uint32_t nth_largest(std::vector<std::uint32_t>& values, std::size_t rank) {
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), nth, values.end(), std::greater<>());
  return *nth;
}

}  // namespace

std::span<const std::uint32_t> TopMagnitudes::select(std::span<const float> values,
                                                     std::size_t wanted) {
  if (wanted == 0) return {};
  collect(values, likely_threshold(values, wanted));
  if (candidate_count_ < wanted) collect(values, 0);
  keep_largest(values, wanted);
  return {candidates_.data(), wanted};
}

/// A magnitude that more than `wanted` values are very likely to reach, by four standard deviations
/// of what a sample can show. Samples are one of every stretch of equal length.
std::uint32_t TopMagnitudes::likely_threshold(std::span<const float> values, std::size_t wanted) {
  const std::size_t stretch = values.size() / kSample;
  if (stretch < 2) return 0;
  const double expected = static_cast<double>(wanted) / static_cast<double>(stretch);
  const auto rank = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 4);
  if (rank >= kSample) return 0;
  Random random(0);
  magnitudes_.resize(kSample);
  for (std::size_t i = 0; i < kSample; ++i) {
    magnitudes_[i] = magnitude_bits(values[i * stretch + random.below(stretch)]);
  }
  return nth_largest(magnitudes_, rank);
}

void TopMagnitudes::collect(std::span<const float> values, std::uint32_t threshold) {
  candidate_count_ = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kChunk) {
    const std::size_t count = std::min(kChunk, values.size() - begin);
    if (candidates_.size() < candidate_count_ + count) {
      candidates_.resize(std::max(candidate_count_ + count, candidates_.size() * 2));
    }
    candidate_count_ += append_large(values, begin, threshold,
                                     std::span(candidates_).subspan(candidate_count_, count));
  }
}

/// Candidates stand in ascending order and keep it.
void TopMagnitudes::keep_largest(std::span<const float> values, std::size_t wanted) {
  const auto candidates = std::span(candidates_).first(candidate_count_);
  magnitudes_.resize(candidates.size());
  std::ranges::transform(candidates, magnitudes_.begin(),
                         [&](std::uint32_t i) { return magnitude_bits(values[i]); });
  const std::uint32_t last = nth_largest(magnitudes_, wanted - 1);
  const auto larger = static_cast<std::size_t>(
      std::ranges::count_if(magnitudes_, [&](std::uint32_t bits) { return bits > last; }));
  std::size_t equal_to_take = wanted - larger;
  std::size_t kept = 0;
  for (const std::uint32_t i : candidates) {
    const std::uint32_t bits = magnitude_bits(values[i]);
    if (bits < last || (bits == last && equal_to_take == 0)) continue;
    if (bits == last) --equal_to_take;
    candidates_[kept++] = i;
  }
}

}  // namespace cohort::compression
