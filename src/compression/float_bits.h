#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cohort {

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

/// Numbers in messages stand where they come, not on their own boundaries.
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

}  // namespace cohort
