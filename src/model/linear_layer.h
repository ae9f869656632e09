#pragma once

#include <torch/torch.h>

#include "model/layer.h"

namespace cohort {

/// torch::nn::Linear, in names, numbers and first weights; computed by apply_linear().
class LinearLayer : public Layer {
 public:
  LinearLayer(std::int64_t in, std::int64_t out, bool bias);

  torch::Tensor forward(const torch::Tensor& input) override;
  bool absorb_relu_after() override;
  bool output_may_be_overwritten() const override { return !relu_; }

  torch::Tensor weight;
  torch::Tensor bias;  ///< Undefined where there is none.

 private:
  bool relu_ = false;
};

}  // namespace cohort
