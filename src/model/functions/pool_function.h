#pragma once

#include <torch/torch.h>

namespace cohort {

/// torch::max_pool2d(images, 2) for [samples, channels, height, width], or the same of
/// relu(images): a maximum does not mind whether negatives are cut before or after it. Keeps one
/// byte per output for the backward pass, where torch keeps the input and eight.
torch::Tensor max_pool_2x2(const torch::Tensor& images, bool relu);

}  // namespace cohort
