#pragma once

#include <cstring>
#include <span>

namespace cohort {

/// Copies floats to the beginning of `to`, which has at least as many and does not overlap them.
///
/// For what is copied in every step: g++ 12 makes of std::ranges::copy on spans a loop of 16 bytes
/// at a time. memcpy takes the widest vectors the CPU has, and writes what is larger than the cache
/// past it, without reading first what it overwrites.
inline void copy_floats(std::span<const float> from, std::span<float> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size_bytes());
}

}  // namespace cohort
