#include "base/finite.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/vectorize.h"

namespace cohort {
namespace {

constexpr std::uint32_t kSign = 0x80000000u;
constexpr std::uint32_t kInfinity = 0x7f800000u;

// As bits, since compilers may assume of floats what is asked here; and without a way out of the
// loop, since almost always all of it is looked at.
COHORT_VECTORIZE std::uint32_t largest_magnitude(const float* values, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & ~kSign);
  }
  return largest;
}

}  // namespace

bool all_finite(std::span<const float> values) {
  return largest_magnitude(values.data(), values.size()) < kInfinity;
}

}  // namespace cohort
