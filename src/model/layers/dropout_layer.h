#pragma once

#include <string>

#include "model/layers/layer.h"
#include "model/layers/layer_plan.h"

namespace cohort {

/// In training, drops a share `p` of the elements and scales the others up; identity otherwise.
/// Which ones is a function of the step context (tensor/step_context.h) and `number`.
class DropoutLayer : public Layer {
 public:
  DropoutLayer(std::string number, double p) : number_(std::move(number)), p_(p) {}

  torch::Tensor forward(const torch::Tensor& input) override;

 private:
  std::string number_;
  double p_;
};

/// Fills the default of `p` in and fails unless it is 0 or more and below 1.
void check_dropout_share(LayerPlan& layer, double default_p);

}  // namespace cohort
