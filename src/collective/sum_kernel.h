#pragma once

#include <span>

namespace cohort {

/// into[i] += from[i]. Both have the same size.
void add_to(std::span<float> into, std::span<const float> from);

/// values[i] *= factor; nothing where that is 1.
void multiply(std::span<float> values, double factor);

/// out[i] = ((sources[0][i] + sources[1][i]) + sources[2][i]) + …, in one pass over memory. There
/// is at least one source; each has out.size() floats and may be `out` itself, but must not overlap
/// it otherwise.
void sum_of(std::span<float> out, std::span<const float* const> sources);

}  // namespace cohort
