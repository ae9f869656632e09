#include "collective/sum_kernel.h"

#include <algorithm>
#include <cstddef>

#include "base/vectorize.h"

namespace cohort {
namespace {

COHORT_VECTORIZE void multiply_floats(float* values, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
}

// `out` may be one of the sources, so the pointers are not restrict; ivdep says that element i
// never depends on another element.

COHORT_VECTORIZE void sum_2(float* out, std::size_t count, const float* a, const float* b) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

COHORT_VECTORIZE void sum_3(float* out, std::size_t count, const float* a, const float* b,
                            const float* c) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = (a[i] + b[i]) + c[i];
}

COHORT_VECTORIZE void sum_4(float* out, std::size_t count, const float* a, const float* b,
                            const float* c, const float* d) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = ((a[i] + b[i]) + c[i]) + d[i];
}

void sum_of_few(float* out, std::size_t count, std::span<const float* const> s) {
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

/// A block of the result is built up in the cache and written last, so that `out` is read before it
/// is overwritten wherever it stands among the sources.
void sum_of_many(std::span<float> out, std::span<const float* const> sources) {
  constexpr std::size_t kBlock = 1024;
  alignas(64) float sum[kBlock];
  for (std::size_t begin = 0; begin < out.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, out.size() - begin);
    const float* terms[kFew];
    std::size_t used = 0;
    while (used < sources.size()) {
      std::size_t term_count = 0;
      if (used > 0) terms[term_count++] = sum;
      while (term_count < kFew && used < sources.size()) {
        terms[term_count++] = sources[used++] + begin;
      }
      float* const to = used == sources.size() ? out.data() + begin : sum;
      sum_of_few(to, count, {terms, term_count});
    }
  }
}

}  // namespace

void multiply(std::span<float> values, double factor) {
  if (factor != 1) multiply_floats(values.data(), values.size(), static_cast<float>(factor));
}

void add_to(std::span<float> into, std::span<const float> from) {
  sum_2(into.data(), into.size(), into.data(), from.data());
}

void sum_of(std::span<float> out, std::span<const float* const> sources) {
  if (sources.size() <= kFew) {
    sum_of_few(out.data(), out.size(), sources);
  } else {
    sum_of_many(out, sources);
  }
}

}  // namespace cohort
