#pragma once

#include <torch/torch.h>

namespace cohort {

/// input * weight^T + bias over the last dimension of `input` ([rows, in] or [.., in]), and a ReLU
/// on top where asked. `bias` may be undefined. The backward pass writes the gradients of weight
/// and bias straight into their GradientSinks where they have one, and leaves out the input's
/// gradient where nobody needs it.
torch::Tensor apply_linear(const torch::Tensor& input, const torch::Tensor& weight,
                           const torch::Tensor& bias, bool relu = false);

}  // namespace cohort
