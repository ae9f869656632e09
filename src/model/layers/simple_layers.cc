// The layers that are one call of torch.
#include "model/layers/layer_table.h"
#include "model/layers/relu_layer.h"

namespace cohort {
namespace {

using torch::Tensor;

template <Tensor (*function)(const Tensor&)>
class ElementwiseLayer : public Layer {
 public:
  Tensor forward(const Tensor& input) override { return function(input); }
};

Tensor gelu(const Tensor& input) {
  return at::gelu(input);
}
Tensor tanh(const Tensor& input) {
  return at::tanh(input);
}
Tensor sigmoid(const Tensor& input) {
  return at::sigmoid(input);
}
class FlattenLayer : public Layer {
 public:
  explicit FlattenLayer(std::int64_t features) : features_(features) {}
  // The size is known, and torch could not infer it for a batch without rows.
  Tensor forward(const Tensor& input) override { return input.reshape({input.size(0), features_}); }

 private:
  std::int64_t features_;
};

class LayerNormLayer : public Layer {
 public:
  explicit LayerNormLayer(std::vector<std::int64_t> sizes)
      : sizes_(std::move(sizes)),
        weight_(register_parameter("weight", torch::ones(sizes_))),
        bias_(register_parameter("bias", torch::zeros(sizes_))) {}

  Tensor forward(const Tensor& input) override {
    return at::layer_norm(input, sizes_, weight_, bias_);
  }

 private:
  std::vector<std::int64_t> sizes_;
  Tensor weight_;
  Tensor bias_;
};

void plan_elementwise(LayerPlan& layer, const DataSpec&) {
  require_embedded(layer);
}

void plan_flatten(LayerPlan& layer, const DataSpec&) {
  require_embedded(layer);
  layer.output.sizes = {layer.input.elements()};
}

template <class Simple>
std::shared_ptr<Layer> build_simple(const LayerPlan&) {
  return std::make_shared<Simple>();
}

std::shared_ptr<Layer> build_flatten(const LayerPlan& layer) {
  return std::make_shared<FlattenLayer>(layer.output.sizes[0]);
}

std::shared_ptr<Layer> build_layer_norm(const LayerPlan& layer) {
  // Over the features of every position, as transformers do; over the whole of an image.
  auto sizes = layer.input.sizes;
  if (layer.input.is_sequence()) sizes.erase(sizes.begin());
  return std::make_shared<LayerNormLayer>(sizes);
}

}  // namespace

LayerType relu_type() {
  return {"relu", {}, plan_elementwise, build_simple<ReluLayer>};
}
LayerType gelu_type() {
  return {"gelu", {}, plan_elementwise, build_simple<ElementwiseLayer<gelu>>};
}
LayerType tanh_type() {
  return {"tanh", {}, plan_elementwise, build_simple<ElementwiseLayer<tanh>>};
}
LayerType sigmoid_type() {
  return {"sigmoid", {}, plan_elementwise, build_simple<ElementwiseLayer<sigmoid>>};
}
LayerType flatten_type() {
  return {"flatten", {}, plan_flatten, build_flatten};
}
LayerType layernorm_type() {
  return {"layernorm", {}, plan_elementwise, build_layer_norm};
}

}  // namespace cohort
