#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/random.h"

namespace cohort {

/// For tests of readers: thousands of broken versions of a good text, each of which a reader must
/// refuse with an Error or take, without harm. The same `random` makes the same injuries.

/// `text` with one to four random injuries, of the kinds that find the holes of parsers: bytes
/// flipped, cut out, doubled, replaced by a piece of `words` or by a number that is too large.
inline std::string mutated(std::string text, Random& random, std::string_view words) {
  const auto below = [&](std::size_t end) {
    return static_cast<std::size_t>(random.below(std::max<std::size_t>(end, 1)));
  };
  static constexpr std::string_view kNumbers[] = {
      "-1", "0", "9223372036854775807", "18446744073709551615", "-9223372036854775808", "1e999"};
  for (std::size_t injuries = 1 + below(4); injuries > 0; --injuries) {
    const std::size_t at = below(text.size());
    const std::size_t length = std::min(1 + below(8), text.size() - std::min(at, text.size()));
    switch (below(6)) {
      case 0:
        if (!text.empty()) text[at] ^= static_cast<char>(1 << below(8));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.replace(at, length, words.substr(below(words.size()), 1 + below(4)));
        break;
      case 4:
        text.replace(at, length, kNumbers[below(std::size(kNumbers))]);
        break;
      default:
        text.resize(below(text.size() + 1));
    }
  }
  return text;
}

}  // namespace cohort
