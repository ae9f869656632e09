#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

namespace cohort {

/// Which elements a dropout layer drops, as a function of numbers only: whether element e of row r
/// of the global batch is dropped does not depend on who computes that row.
struct DropoutMask {
  std::uint64_t key = 0;       ///< Of seed, step and layer.
  std::int64_t first_row = 0;  ///< The row of the global batch that is row 0 here.
  double p = 0;                ///< The share that is dropped; 0 to below 1.

  /// The mask of the calling thread's step for the layer of that number.
  static DropoutMask of_this_step(const std::string& layer_number, double p);

  /// input / (1 - p), with the dropped elements 0. Rows run along dimension 0.
  torch::Tensor apply_to(const torch::Tensor& input) const;
};

/// DropoutMask::apply_to with its gradient.
torch::Tensor drop_elements(const torch::Tensor& input, const DropoutMask& mask);

}  // namespace cohort
