#pragma once

#include <torch/torch.h>

#include "model/layers/layer.h"

namespace cohort {

/// torch::nn::Conv2d, in names, numbers and first weights.
class Conv2dLayer : public Layer {
 public:
  explicit Conv2dLayer(const torch::nn::Conv2dOptions& options);

  torch::Tensor forward(const torch::Tensor& input) override;
  bool output_may_be_overwritten() const override { return true; }

 private:
  torch::Tensor weight_;
  torch::Tensor bias_;
  std::int64_t stride_;
  std::int64_t padding_;
};

}  // namespace cohort
