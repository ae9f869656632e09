#include "compression/worker_momentum.h"

#include "base/vectorize.h"

namespace cohort {
namespace {

COHORT_VECTORIZE void step_ahead(float* __restrict velocity, float* __restrict gradient,
                                 std::size_t count, float factor, float own, float ahead) {
  for (std::size_t i = 0; i < count; ++i) {
    velocity[i] = factor * velocity[i] + gradient[i];
    gradient[i] = own * gradient[i] + ahead * velocity[i];
  }
}

}  // namespace

void apply_momentum(const WorkerMomentum& momentum, std::span<float> velocity,
                    std::span<float> gradient) {
  const auto factor = static_cast<float>(momentum.factor);
  const float own = momentum.nesterov ? 1 : 0;
  const float ahead = momentum.nesterov ? factor : 1;
  step_ahead(velocity.data(), gradient.data(), gradient.size(), factor, own, ahead);
}

}  // namespace cohort
