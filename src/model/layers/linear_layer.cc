#include "model/functions/functions.h"
#include "model/layers/basic_layers.h"

namespace cohort::model {

// Torch's own module draws the first weights, so that they are torch's. The mark is set only where
// it is known how many rows of the factors a sample brings (ProductMark in tensor/gradient_sink.h).
LinearLayer::LinearLayer(std::int64_t in, std::int64_t out, bool with_bias,
                         std::int64_t rows_per_sample) {
  torch::nn::Linear fresh(torch::nn::LinearOptions(in, out).bias(with_bias));
  weight = register_parameter("weight", fresh->weight);
  if (with_bias) bias = register_parameter("bias", fresh->bias);
  if (rows_per_sample > 0) product_.emplace(weight, rows_per_sample);
}

torch::Tensor LinearLayer::forward(const torch::Tensor& input) {
  return apply_linear(input, weight, bias, relu_);
}

bool LinearLayer::absorb_relu_after() {
  relu_ = true;
  return true;
}

namespace {

/// Without `out` it is the last layer: as many outputs as there are classes or values to predict.
void plan_linear(LayerPlan& layer, const tensor::DataSpec& spec) {
  require_embedded(layer);
  if (!layer.input.is_flat() && !layer.input.is_sequence()) {
    fail_layer(layer, "it needs a flat input, but gets {}; put a flatten layer before it",
               to_string(layer.input));
  }
  if (layer.options.out == 0) layer.options.out = spec.outputs;
  require_positive(layer, "out", layer.options.out, "it is the number of outputs, 1 or more");
  count_weights(layer, {layer.input.sizes.back(), layer.options.out});
  layer.output.sizes.back() = layer.options.out;
}

/// Every position of a sequence is a row of its own to the weight.
std::shared_ptr<Layer> build_linear(const LayerPlan& layer) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < layer.input.sizes.size(); ++i) rows *= layer.input.sizes[i];
  return std::make_shared<LinearLayer>(layer.input.sizes.back(), layer.options.out,
                                       layer.options.bias, rows);
}

}  // namespace

LayerType linear_type() {
  return {"linear", {"out", "bias"}, plan_linear, build_linear};
}

}  // namespace cohort::model
