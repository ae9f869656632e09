#pragma once

#include <torch/torch.h>

namespace cohort {

/// apply_linear() where gradients travel during the backward pass (StepContext::gradients_travel):
/// a layer is two nodes of autograd's graph, so that the gradients of its parameters come before
/// that of its input, and are on their way while that one is computed. Autograd hands a parameter's
/// gradient on as soon as the node that makes it has ended. The second node costs some
/// microseconds a layer, so it is not for those whose gradients do not travel. Gradients of
/// gradients (create_graph) are not made.
torch::Tensor apply_travelling_linear(const torch::Tensor& input, const torch::Tensor& weight,
                                      const torch::Tensor& bias, bool relu);

}  // namespace cohort
