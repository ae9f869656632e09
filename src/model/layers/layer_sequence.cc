#include "model/layers/layer_sequence.h"

#include "model/layers/fuse_layers.h"
#include "model/layers/layer_table.h"

namespace cohort {

LayerSequence::LayerSequence(const std::vector<LayerPlan>& plans) {
  std::vector<std::shared_ptr<Layer>> layers;
  for (const auto& plan : plans) {
    layers.push_back(plan.type->build(plan));
    register_module(std::to_string(layers.size() - 1), layers.back());
  }
  running_ = fuse_layers(std::move(layers));
}

torch::Tensor LayerSequence::forward(const torch::Tensor& input) {
  torch::Tensor value = input;
  for (const auto& layer : running_) value = layer->forward(value);
  return value;
}

bool LayerSequence::output_may_be_overwritten() const {
  return !running_.empty() && running_.back()->output_may_be_overwritten();
}

}  // namespace cohort
