#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/elements.h"

namespace cohort::collective {

/// How elements of several ranks become one: the loops behind it, for every type that can be
/// reduced. All work in the order in which the sources are given, element by element, so that the
/// same sources give the same bits everywhere.
///
///             floats                       whole numbers     booleans
///   sum       bfloat16: in float, rounded   wraps around     or
///             once per call
///   product   the same                      wraps around     and
///   min, max  NaN where any source has one                   and, or
enum class Reduction : std::uint8_t { sum, product, min, max };

/// For sentences: "sum".
constexpr const char* name_of(Reduction how) {
  constexpr const char* names[] = {"sum", "product", "min", "max"};
  return names[static_cast<std::size_t>(how)];
}

struct Reducer {
  ElementType type = ElementType::f32;  ///< Not byte.
  Reduction how = Reduction::sum;
};

/// out = the sources, combined in their order. There is at least one; each is as long as `out` and
/// may be `out` itself, but must not overlap it otherwise. Any thread; nothing is kept.
void reduce_of(Reducer reducer, std::span<std::byte> out,
               std::span<const std::byte* const> sources);

/// Divides every element, of a floating type, by a number of ranks: what makes a mean of a sum.
void divide(Elements floats, int ranks);

constexpr bool is_floating(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f64 || type == ElementType::bf16;
}

}  // namespace cohort::collective
