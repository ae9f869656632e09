#pragma once

#include <span>

namespace cohort {

/// SGD's momentum where a worker applies it to its own gradients before they leave. Whoever gets
/// them must apply none of its own. Applied after a lossy codec it would keep going on with what
/// one message said too much and the next one takes back; applied to gradients that are late by
/// several updates it would swing.
struct WorkerMomentum {
  double factor = 0;  ///< 0: there is none.
  bool nesterov = false;
};

/// velocity = factor * velocity + gradient; the gradient becomes what SGD would step by.
void apply_momentum(const WorkerMomentum& momentum, std::span<float> velocity,
                    std::span<float> gradient);

}  // namespace cohort
