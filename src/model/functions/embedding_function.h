#pragma once

#include <torch/torch.h>

namespace cohort {

/// The rows of `weight` that `ids` name. Where the weight is a table kept apart (TableRows), its
/// rows are made current first, and the backward pass gives it only their gradients.
torch::Tensor apply_embedding(const torch::Tensor& ids, const torch::Tensor& weight);

}  // namespace cohort
