#pragma once

#include <span>

namespace cohort {

/// Copies `from` to the beginning of `to`, which does not overlap it and will not be read soon: it
/// does not push other things out of the cache, and is not read before it is written. The copy is
/// complete before anything that this thread stores afterwards.
void copy_past_cache(std::span<const float> from, std::span<float> to);

}  // namespace cohort
