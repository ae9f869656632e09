#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cohort {

/// Whole numbers among floats that are kept or sent as such: 16 bits a float, lowest first, so that
/// every float is an ordinary number.
inline constexpr std::size_t kFloatsPerWord = 4;

inline void put_word(std::uint64_t word, std::vector<float>& to) {
  for (std::size_t i = 0; i < kFloatsPerWord; ++i) {
    to.push_back(static_cast<float>((word >> (16 * i)) & 0xffff));
  }
}

/// `from` has at least kFloatsPerWord floats, made by put_word().
inline std::uint64_t word_at(std::span<const float> from) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < kFloatsPerWord; ++i) {
    word |= (static_cast<std::uint64_t>(from[i]) & 0xffff) << (16 * i);
  }
  return word;
}

}  // namespace cohort
