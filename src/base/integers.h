#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace cohort {

/// Whole numbers that a job, a file, a message or a variable of the environment gives. Nothing here
/// throws: where a text is no number, or a result has no room in its type, the answer is nothing,
/// and the caller says in its own words what was wrong. Whoever allocates memory by such numbers
/// multiplies them here first.

/// The whole number that all of `text` is written as, in decimal; nothing where it is none (also
/// with spaces around it, or a plus sign) or not from `least` to `most`.
inline std::optional<std::int64_t> parse_integer(
    std::string_view text, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
    std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, wrong] = std::from_chars(text.data(), end, value);
  if (wrong != std::errc() || stopped != end || value < least || value > most) return std::nullopt;
  return value;
}

/// The product of all factors, 1 of none; nothing where it overflows. A factor of 0 makes it 0,
/// however large the others are.
template <std::integral T>
constexpr std::optional<T> checked_product(std::span<const T> factors) {
  for (const T factor : factors) {
    if (factor == 0) return T{0};
  }
  T product = 1;
  for (const T factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

template <std::integral T, std::same_as<T>... More>
constexpr std::optional<T> checked_product(T first, More... more) {
  const T factors[] = {first, more...};
  return checked_product(std::span<const T>(factors));
}

/// The sum, added from left to right; nothing where it overflows on the way, even if a later
/// summand would bring it back into range.
template <std::integral T, std::same_as<T>... More>
constexpr std::optional<T> checked_sum(T first, More... more) {
  T sum = first;
  bool fits = true;
  ((fits = fits && !__builtin_add_overflow(sum, more, &sum)), ...);
  return fits ? std::optional(sum) : std::nullopt;
}

}  // namespace cohort
