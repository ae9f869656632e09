#pragma once

#include <cstddef>

namespace cohort::optimizer {

/// The loops of the optimizers: one pass over memory each, compiled for several instruction sets.
/// No two of the arrays may overlap. No operation is fused, so every machine gets the same bits.
/// What does not apply is a number that changes nothing (a decay of 0, a scale of 1): memory, not
/// arithmetic, is what a pass waits for, so there is one loop for all the variants of a rule.

/// d = g * gradient_scale + p * weight_decay;  p -= lr * d
struct SgdScalars {
  float lr;
  float gradient_scale;
  float weight_decay;
};
void sgd_kernel(float* p, const float* g, std::size_t count, const SgdScalars& s);

/// b = b * momentum + d;  p -= lr * (b * buffer_share + d * gradient_share), with d as in SGD.
/// The shares are 1 and 0 for plain momentum, `momentum` and 1 for Nesterov's.
struct MomentumScalars {
  SgdScalars sgd;
  float momentum;
  float buffer_share;
  float gradient_share;
};
void momentum_kernel(float* p, const float* g, float* b, std::size_t count,
                     const MomentumScalars& s);

/// p *= shrink;  m = m * beta1 + d * (1 - beta1);  v = v * beta2 + d * d * (1 - beta2);
/// p -= step_size * m / (sqrt(v) * root_scale + epsilon), with d as in SGD.
/// Adam decays by `weight_decay`, AdamW by `shrink`; step_size and root_scale correct the bias.
struct AdamScalars {
  float gradient_scale;
  float weight_decay;
  float shrink;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float step_size;
  float root_scale;
  float epsilon;
};
struct AdamMoments {
  float* m;
  float* v;
};
void adam_kernel(float* p, const float* g, const AdamMoments& moments, std::size_t count,
                 const AdamScalars& s);

/// sum += d * d;  p -= lr * d / (sqrt(sum) + epsilon), with d as in SGD.
struct AdagradScalars {
  SgdScalars sgd;
  float epsilon;
};
void adagrad_kernel(float* p, const float* g, float* sum, std::size_t count,
                    const AdagradScalars& s);

}  // namespace cohort::optimizer
