// The layers without weights that take any shape of floats: element by element, flatten and
// dropout. Each is one call of torch, or of one of our own functions.
#include "model/functions/functions.h"
#include "model/layers/basic_layers.h"

namespace cohort::model {
namespace {

using torch::Tensor;

/// A function of each number alone: the shape stays.
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

/// A sample as one row of numbers.
class FlattenLayer : public Layer {
 public:
  explicit FlattenLayer(std::int64_t features) : features_(features) {}
  // The size is known from the plan, and torch could not infer it for a batch without rows.
  Tensor forward(const Tensor& input) override { return input.reshape({input.size(0), features_}); }

 private:
  std::int64_t features_;
};

void plan_elementwise(LayerPlan& layer, const tensor::DataSpec&) {
  require_embedded(layer);
}

void plan_flatten(LayerPlan& layer, const tensor::DataSpec&) {
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

void plan_dropout(LayerPlan& layer, const tensor::DataSpec&) {
  require_embedded(layer);
  check_dropout_share(layer, 0.5);
}

std::shared_ptr<Layer> build_dropout(const LayerPlan& layer) {
  return std::make_shared<DropoutLayer>(layer.number, *layer.options.p);
}

}  // namespace

Tensor DropoutLayer::forward(const Tensor& input) {
  if (!is_training() || p_ == 0) return input;
  return drop_elements(input, DropoutMask::of_this_step(number_, p_));
}

void check_dropout_share(LayerPlan& layer, double default_p) {
  if (!layer.options.p) layer.options.p = default_p;
  if (!(*layer.options.p >= 0 && *layer.options.p < 1)) {
    fail_layer(layer, "p = {} is not possible; the share to drop is 0 or more and below 1",
               *layer.options.p);
  }
}

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
LayerType dropout_type() {
  return {"dropout", {"p"}, plan_dropout, build_dropout};
}

}  // namespace cohort::model
