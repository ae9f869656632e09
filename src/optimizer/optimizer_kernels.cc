#include "optimizer/optimizer_kernels.h"

#include <cmath>

#include "base/vectorize.h"

namespace cohort::optimizer {
namespace {

/// p - lr * d rounded once, as torch does it. The product of two floats is exact in a double, so
/// this needs no instruction that older processors lack.
inline float step_down(float p, float lr, float d) {
  return static_cast<float>(double{p} - double{lr} * double{d});
}

}  // namespace

// The scalars are copied to locals, since a store through a float* could otherwise change them as
// far as the compiler knows, and the loops would not be vectorised.

COHORT_VECTORIZE
void sgd_kernel(float* __restrict p, const float* __restrict g, std::size_t count,
                const SgdScalars& s) {
  const auto [lr, scale, decay] = s;
  for (std::size_t i = 0; i < count; ++i) {
    p[i] = step_down(p[i], lr, g[i] * scale + p[i] * decay);
  }
}

COHORT_VECTORIZE
void momentum_kernel(float* __restrict p, const float* __restrict g, float* __restrict b,
                     std::size_t count, const MomentumScalars& s) {
  const auto [lr, scale, decay] = s.sgd;
  const float momentum = s.momentum;
  const float buffer_share = s.buffer_share;
  const float gradient_share = s.gradient_share;
  for (std::size_t i = 0; i < count; ++i) {
    const float d = g[i] * scale + p[i] * decay;
    const float buffer = b[i] * momentum + d;
    b[i] = buffer;
    p[i] = step_down(p[i], lr, buffer * buffer_share + d * gradient_share);
  }
}

COHORT_VECTORIZE
void adam_kernel(float* __restrict p, const float* __restrict g, const AdamMoments& moments,
                 std::size_t count, const AdamScalars& scalars) {
  const AdamScalars s = scalars;
  float* __restrict first = moments.m;
  float* __restrict second = moments.v;
  for (std::size_t i = 0; i < count; ++i) {
    const float d = g[i] * s.gradient_scale + p[i] * s.weight_decay;
    const float m = first[i] * s.beta1 + d * s.one_minus_beta1;
    const float v = second[i] * s.beta2 + s.one_minus_beta2 * d * d;
    first[i] = m;
    second[i] = v;
    p[i] = p[i] * s.shrink - s.step_size * m / (std::sqrt(v) * s.root_scale + s.epsilon);
  }
}

COHORT_VECTORIZE
void adagrad_kernel(float* __restrict p, const float* __restrict g, float* __restrict sum,
                    std::size_t count, const AdagradScalars& s) {
  const auto [lr, scale, decay] = s.sgd;
  const float epsilon = s.epsilon;
  for (std::size_t i = 0; i < count; ++i) {
    const float d = g[i] * scale + p[i] * decay;
    const float total = sum[i] + d * d;
    sum[i] = total;
    p[i] -= lr * d / (std::sqrt(total) + epsilon);
  }
}

}  // namespace cohort::optimizer
