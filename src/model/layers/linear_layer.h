#pragma once

#include <torch/torch.h>

#include <optional>

#include "model/layers/layer.h"
#include "tensor/gradient_sink.h"

namespace cohort {

/// torch::nn::Linear, in names, numbers and first weights; computed by apply_linear().
class LinearLayer : public Layer {
 public:
  /// `rows_per_sample`: how many rows of inputs a sample has; 0 where that is not known.
  LinearLayer(std::int64_t in, std::int64_t out, bool bias, std::int64_t rows_per_sample = 0);

  torch::Tensor forward(const torch::Tensor& input) override;
  bool absorb_relu_after() override;
  bool output_may_be_overwritten() const override { return !relu_; }

  torch::Tensor weight;
  torch::Tensor bias;  ///< Undefined where there is none.

 private:
  bool relu_ = false;
  std::optional<ProductMark> product_;
};

}  // namespace cohort
