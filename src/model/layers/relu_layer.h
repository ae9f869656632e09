#pragma once

#include "model/layers/layer.h"

namespace cohort {

/// max(0, input); in place where fuse_layers() found that nobody else needs the input.
class ReluLayer : public Layer {
 public:
  torch::Tensor forward(const torch::Tensor& input) override {
    if (!in_place_) return input.relu();
    torch::Tensor own = input;
    return own.relu_();
  }

  void work_in_place() { in_place_ = true; }

 private:
  bool in_place_ = false;
};

}  // namespace cohort
