#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// What only one worker has (what compression left over, a velocity of its own). Only the strategy
/// that made it understands it; whoever has another meaning in mind leaves it alone.
struct OwnMemory {
  std::string meaning = {};  ///< Empty: there is nothing.
  std::vector<std::vector<float>> floats = {};
  std::vector<double> doubles = {};
  std::vector<std::int64_t> numbers = {};

  bool empty() const { return meaning.empty(); }
  void clear() { *this = {}; }
  bool operator==(const OwnMemory&) const = default;
};

}  // namespace cohort
