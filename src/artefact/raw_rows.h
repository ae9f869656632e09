#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "data/preprocessing/preprocessing.h"
#include "tensor/data_spec.h"

namespace cohort {

/// Rows that a program has, as the input of a model, through the preprocessing of its training.
/// Throws Error(invalid) naming the row (from 1) for one that does not fit.
torch::Tensor input_of(const Preprocessing& preprocessing, const DataSpec& spec,
                       const std::vector<std::vector<std::string>>& rows);
torch::Tensor input_of(const Preprocessing& preprocessing, const DataSpec& spec,
                       const std::vector<std::vector<double>>& rows);

}  // namespace cohort
