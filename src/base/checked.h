#pragma once

#include <concepts>
#include <optional>
#include <span>

namespace cohort {

/// Arithmetic on sizes that a job, a file or a message gives: nothing where the result has no room
/// in its type. Whoever allocates asks here first.

template <std::integral T>
constexpr std::optional<T> checked_product(std::span<const T> factors) {
  for (const T factor : factors) {
    if (factor == 0) return T{0};  // However large the others are.
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

template <std::integral T, std::same_as<T>... More>
constexpr std::optional<T> checked_sum(T first, More... more) {
  T sum = first;
  bool fits = true;
  ((fits = fits && !__builtin_add_overflow(sum, more, &sum)), ...);
  return fits ? std::optional(sum) : std::nullopt;
}

}  // namespace cohort
