#pragma once

#include <cstdint>
#include <span>

namespace cohort {

/// into[i] += from[i].
void add_floats(std::span<float> into, std::span<const float> from);

/// into[i] -= from[i], or 0 where that is not finite.
void subtract_floats(std::span<float> into, std::span<const float> from);

/// Zero for what is not finite.
void drop_non_finite(std::span<float> values);

/// The largest of magnitude_bits(); 0 for none.
std::uint32_t largest_magnitude_bits(std::span<const float> values);

bool all_finite(std::span<const float> values);

}  // namespace cohort
