#pragma once

#include <cstddef>
#include <span>

#include "base/copy_floats.h"

namespace cohort {

/// Copies `from` to the beginning of `to`, which does not overlap it and will not be read soon: it
/// does not push other things out of the cache, and is not read before it is written. The copy is
/// complete before anything that this thread stores afterwards.
void copy_past_cache(std::span<const float> from, std::span<float> to);

/// The way to copy all of a model of so many bytes, in one piece or several: a large one is out of
/// the cache again before anybody reads it.
using CopyFloats = void (*)(std::span<const float> from, std::span<float> to);
inline CopyFloats way_to_copy(std::size_t bytes) {
  constexpr std::size_t kLarge = 16 << 20;
  return bytes >= kLarge ? copy_past_cache : copy_floats;
}

}  // namespace cohort
