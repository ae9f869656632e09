#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cohort::compression {

/// Floats by their bits, numbers in messages, and the loops over floats that several codecs need.
/// The functions that look at bits have no branches that depend on the values, so that loops with
/// them become vector instructions.

// Bits of a float: sign, 8 of exponent, 23 of fraction.

inline constexpr std::uint32_t kInfinityBits = 0x7f800000;

/// Without the sign. As integers these are ordered like the magnitudes they stand for, then come
/// infinity and the NaNs.
inline std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
}

inline bool is_finite(float x) {
  return magnitude_bits(x) < kInfinityBits;
}

/// The magnitude in bits, infinity as the largest finite float and NaN as 0.
inline std::uint32_t finite_magnitude_bits(float x) {
  const std::uint32_t bits = magnitude_bits(x);
  const std::uint32_t limited = bits < kInfinityBits ? bits : kInfinityBits - 1;
  return bits <= kInfinityBits ? limited : 0;
}

// Numbers in messages stand where they come, not on their own boundaries.
template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

// Loops, compiled for several instruction sets. Spans of one call have the same size.

/// into[i] += from[i].
void add_floats(std::span<float> into, std::span<const float> from);

/// into[i] -= from[i], or 0 where that is not finite.
void subtract_floats(std::span<float> into, std::span<const float> from);

/// Zero for what is not finite.
void drop_non_finite(std::span<float> values);

/// The largest of magnitude_bits(); 0 for none.
std::uint32_t largest_magnitude_bits(std::span<const float> values);

bool all_finite(std::span<const float> values);

}  // namespace cohort::compression
