#pragma once

#include <memory>
#include <vector>

#include "model/layers/layer.h"
#include "model/layers/layer_plan.h"

namespace cohort {

/// Layers one after the other. Parameters are named by the layer's place, from 0: "0.weight",
/// "3.1.weight", as torch.nn.Sequential names them.
class LayerSequence : public Layer {
 public:
  explicit LayerSequence(const std::vector<LayerPlan>& plans);

  torch::Tensor forward(const torch::Tensor& input) override;
  bool output_may_be_overwritten() const override;

 private:
  std::vector<std::shared_ptr<Layer>> running_;  ///< What is left after fuse_layers().
};

}  // namespace cohort
