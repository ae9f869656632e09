#include "model/layers/conv2d_layer.h"

#include "model/layers/layer_table.h"
#include "model/layers/window.h"

namespace cohort {

Conv2dLayer::Conv2dLayer(const torch::nn::Conv2dOptions& options)
    : stride_(options.stride()->at(0)),
      padding_(c10::get<torch::ExpandingArray<2>>(options.padding())->at(0)) {
  torch::nn::Conv2d fresh(options);
  weight_ = register_parameter("weight", fresh->weight);
  if (options.bias()) bias_ = register_parameter("bias", fresh->bias);
}

torch::Tensor Conv2dLayer::forward(const torch::Tensor& input) {
  return at::conv2d(input, weight_, bias_, stride_, padding_);
}

namespace {

void plan_conv2d(LayerPlan& layer, const DataSpec&) {
  require_image(layer);
  auto& options = layer.options;
  require_positive(layer, "out", options.out, "it is the number of channels to make, 1 or more");
  if (options.kernel == 0) options.kernel = 3;
  if (options.stride == 0) options.stride = 1;
  slide_window(layer, options.out);
  count_weights(layer, {layer.input.sizes[0], options.out, options.kernel, options.kernel});
}

std::shared_ptr<Layer> build_conv2d(const LayerPlan& layer) {
  const auto& options = layer.options;
  return std::make_shared<Conv2dLayer>(
      torch::nn::Conv2dOptions(layer.input.sizes[0], options.out, options.kernel)
          .stride(options.stride)
          .padding(options.padding)
          .bias(options.bias));
}

}  // namespace

LayerType conv2d_type() {
  return {"conv2d", {"out", "kernel", "stride", "padding", "bias"}, plan_conv2d, build_conv2d};
}

}  // namespace cohort
