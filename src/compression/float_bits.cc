#include "compression/float_bits.h"

#include <cstddef>

#include "base/vectorize.h"

namespace cohort::compression {
namespace {

COHORT_VECTORIZE void add_loop(float* __restrict into, const float* __restrict from,
                               std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
}

COHORT_VECTORIZE void subtract_loop(float* __restrict into, const float* __restrict from,
                                    std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float difference = into[i] - from[i];
    into[i] = is_finite(difference) ? difference : 0.0F;
  }
}

COHORT_VECTORIZE void drop_loop(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = is_finite(values[i]) ? values[i] : 0.0F;
}

COHORT_VECTORIZE std::uint32_t largest_loop(const float* values, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = magnitude_bits(values[i]);
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

}  // namespace

void add_floats(std::span<float> into, std::span<const float> from) {
  add_loop(into.data(), from.data(), into.size());
}

void subtract_floats(std::span<float> into, std::span<const float> from) {
  subtract_loop(into.data(), from.data(), into.size());
}

void drop_non_finite(std::span<float> values) {
  drop_loop(values.data(), values.size());
}

std::uint32_t largest_magnitude_bits(std::span<const float> values) {
  return largest_loop(values.data(), values.size());
}

bool all_finite(std::span<const float> values) {
  return largest_magnitude_bits(values) < kInfinityBits;
}

}  // namespace cohort::compression
