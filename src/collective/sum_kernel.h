#pragma once

#include <span>

#include "collective/elements.h"

namespace cohort::collective {

/// The loops that add numbers up. All of them sum in the order in which the terms are given, so the
/// same terms give the same bits, whatever the machine's vector length: a result never mixes
/// elements. Any thread; nothing is kept.

/// into[i] += from[i]. Both have the same size. Whole numbers that overflow wrap around.
template <Number T>
void add_to(std::span<T> into, std::span<const T> from);

inline void add_to(std::span<float> into, std::span<const float> from) {
  add_to<float>(into, from);
}

/// values[i] *= factor; nothing where that is 1.
void multiply(std::span<float> values, double factor);

/// out[i] = ((sources[0][i] + sources[1][i]) + sources[2][i]) + …, in one pass over memory. There
/// is at least one source; each has out.size() numbers and may be `out` itself, but must not
/// overlap it otherwise.
template <Number T>
void sum_of(std::span<T> out, std::span<const T* const> sources);

inline void sum_of(std::span<float> out, std::span<const float* const> sources) {
  sum_of<float>(out, sources);
}

}  // namespace cohort::collective
