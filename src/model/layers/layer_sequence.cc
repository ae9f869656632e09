#include "model/layers/basic_layers.h"

namespace cohort::model {
namespace {

/// The same function with fewer passes over memory. Results and gradients stay what they were:
///
///   linear, relu    the linear layer cuts its own output while it is in the cache
///   relu, maxpool   the pool cuts what it chose: max(relu(x)) = relu(max(x)), on a quarter of the
///                   values, and the gradient of a value that ReLU cut is 0 either way
///   conv2d, relu    (also after batch norm and residual) ReLU overwrites its input, which the
///                   layer before does not look at again
///
/// Layers that were absorbed are left out of the result; they have no parameters.
std::vector<std::shared_ptr<Layer>> fuse_layers(std::vector<std::shared_ptr<Layer>> layers) {
  std::vector<std::shared_ptr<Layer>> result;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto* relu = dynamic_cast<ReluLayer*>(layers[i].get());
    if (relu != nullptr) {
      if (i + 1 < layers.size() && layers[i + 1]->absorb_relu_before()) continue;
      if (!result.empty() && result.back()->absorb_relu_after()) continue;
      if (!result.empty() && result.back()->output_may_be_overwritten()) relu->work_in_place();
    }
    result.push_back(std::move(layers[i]));
  }
  return result;
}

}  // namespace

// All layers are registered, also those that others absorbed: places and names stay those of the
// job.
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

}  // namespace cohort::model
