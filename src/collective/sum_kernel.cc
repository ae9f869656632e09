#include "collective/sum_kernel.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "base/vectorize.h"

namespace cohort::collective {
namespace {

COHORT_VECTORIZE void multiply_floats(float* values, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
}

// Whole numbers wrap around; signed overflow would be undefined, so they are added as unsigned
// ones.
template <Number T>
constexpr T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

// `out` may be one of the sources, so the pointers are not restrict; ivdep says that element i
// never depends on another element.

template <Number T>
COHORT_VECTORIZE void sum_2(T* out, std::size_t count, const T* a, const T* b) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = plus(a[i], b[i]);
}

template <Number T>
COHORT_VECTORIZE void sum_3(T* out, std::size_t count, const T* a, const T* b, const T* c) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = plus(plus(a[i], b[i]), c[i]);
}

template <Number T>
COHORT_VECTORIZE void sum_4(T* out, std::size_t count, const T* a, const T* b, const T* c,
                            const T* d) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = plus(plus(plus(a[i], b[i]), c[i]), d[i]);
}

template <Number T>
void sum_of_few(T* out, std::size_t count, std::span<const T* const> s) {
  switch (s.size()) {
    case 1:
      if (s[0] != out) std::copy_n(s[0], count, out);
      return;
    case 2:
      return sum_2(out, count, s[0], s[1]);
    case 3:
      return sum_3(out, count, s[0], s[1], s[2]);
    default:
      return sum_4(out, count, s[0], s[1], s[2], s[3]);
  }
}

constexpr std::size_t kFew = 4;

/// Up to kFew terms are added in one pass over memory; more would need as many loops as there are
/// numbers of sources. So many sources are added kFew at a time, the sum so far being the first
/// term.
///
/// A block of the result is built up in the cache and written last, so that `out` is read before it
/// is overwritten wherever it stands among the sources.
template <Number T>
void sum_of_many(std::span<T> out, std::span<const T* const> sources) {
  constexpr std::size_t kBlock = 4096 / sizeof(T);
  alignas(64) T sum[kBlock];
  for (std::size_t begin = 0; begin < out.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, out.size() - begin);
    const T* terms[kFew];
    std::size_t used = 0;
    while (used < sources.size()) {
      std::size_t term_count = 0;
      if (used > 0) terms[term_count++] = sum;
      while (term_count < kFew && used < sources.size()) {
        terms[term_count++] = sources[used++] + begin;
      }
      T* const to = used == sources.size() ? out.data() + begin : sum;
      sum_of_few<T>(to, count, {terms, term_count});
    }
  }
}

}  // namespace

void multiply(std::span<float> values, double factor) {
  if (factor != 1) multiply_floats(values.data(), values.size(), static_cast<float>(factor));
}

template <Number T>
void add_to(std::span<T> into, std::span<const T> from) {
  sum_2(into.data(), into.size(), into.data(), from.data());
}

template <Number T>
void sum_of(std::span<T> out, std::span<const T* const> sources) {
  if (sources.size() <= kFew) {
    sum_of_few(out.data(), out.size(), sources);
  } else {
    sum_of_many(out, sources);
  }
}

template void add_to(std::span<float>, std::span<const float>);
template void add_to(std::span<double>, std::span<const double>);
template void add_to(std::span<std::int64_t>, std::span<const std::int64_t>);
template void sum_of(std::span<float>, std::span<const float* const>);
template void sum_of(std::span<double>, std::span<const double* const>);
template void sum_of(std::span<std::int64_t>, std::span<const std::int64_t* const>);

}  // namespace cohort::collective
