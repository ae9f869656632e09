#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace cohort::server {

/// Ways to copy floats that do not overlap, to the beginning of `to`, which has at least as many.
/// A server's time is mostly spent in such copies, so it matters which way is taken: what will be
/// read soon should stay in the cache, and what will not should leave it alone.

/// For what is copied in every step: g++ 12 makes of std::ranges::copy on spans a loop of 16 bytes
/// at a time. memcpy takes the widest vectors the CPU has, and writes what is larger than the cache
/// past it, without reading first what it overwrites.
inline void copy_floats(std::span<const float> from, std::span<float> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size_bytes());
}

/// For what will not be read soon: it does not push other things out of the cache, and is not read
/// before it is written. The copy is complete before anything that this thread stores afterwards.
void copy_past_cache(std::span<const float> from, std::span<float> to);

/// The way to copy all of a model of so many bytes, in one go or several: a large one is out of
/// the cache again before anybody reads it.
using CopyFloats = void (*)(std::span<const float> from, std::span<float> to);
inline CopyFloats way_to_copy(std::size_t bytes) {
  constexpr std::size_t kLarge = 16 << 20;
  return bytes >= kLarge ? copy_past_cache : copy_floats;
}

/// Whoever does several things with many floats does them block by block, this many at once: a
/// block, and what it updates, stays in a core's own cache from the first to the last of them.
inline constexpr std::size_t kBlockFloats = 16384;

/// Calls visit(begin, count) for every block of `count` floats.
template <class Visit>
void for_each_block(std::size_t count, Visit&& visit) {
  for (std::size_t begin = 0; begin < count; begin += kBlockFloats) {
    visit(begin, std::min(kBlockFloats, count - begin));
  }
}

}  // namespace cohort::server
