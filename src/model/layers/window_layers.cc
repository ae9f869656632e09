// The layers that slide a square window over an image: convolution and pools.
#include "model/functions/functions.h"
#include "model/layers/basic_layers.h"

namespace cohort::model {
namespace {

/// Fails unless the layer gets an image.
void require_image(const LayerPlan& layer) {
  if (layer.input.is_image()) return;
  fail_layer(layer, "it needs an image (channels x height x width), but gets {}",
             to_string(layer.input));
}

/// Checks kernel, stride and padding of a layer that slides a window over an image, and sets its
/// output to `channels` x height x width: as many windows as fit whole, with the padding.
void slide_window(LayerPlan& layer, std::int64_t channels) {
  const auto& options = layer.options;
  require_positive(layer, "kernel", options.kernel, "it is the side of the window, 1 or more");
  require_positive(layer, "stride", options.stride, "it is the step of the window, 1 or more");
  if (options.padding < 0) {
    fail_layer(layer, "padding = {} is not possible; 0 or more is", options.padding);
  }
  const auto height = layer.input.sizes[1] + 2 * options.padding;
  const auto width = layer.input.sizes[2] + 2 * options.padding;
  if (options.kernel > height || options.kernel > width) {
    fail_layer(layer, "kernel {} is larger than its {}x{} input{}", options.kernel,
               layer.input.sizes[1], layer.input.sizes[2],
               options.padding > 0 ? fmt::format(" with padding {}", options.padding) : "");
  }
  layer.output.sizes = {channels, (height - options.kernel) / options.stride + 1,
                        (width - options.kernel) / options.stride + 1};
}

void plan_conv2d(LayerPlan& layer, const tensor::DataSpec&) {
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

/// The number of windows along a side is (side + 2 · padding - kernel) / stride + 1, rounded down,
/// as torch has it: what is planned here must be the shape that torch's functions give. The usual
/// 2x2 windows are our own function, which takes a ReLU before it along for nothing.
class MaxPoolLayer : public Layer {
 public:
  explicit MaxPoolLayer(const LayerOptions& options) : options_(options) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    if (options_.kernel == 2 && options_.stride == 2 && options_.padding == 0) {
      return max_pool_2x2(input, relu_);
    }
    auto output = at::max_pool2d(input, options_.kernel, options_.stride, options_.padding);
    return relu_ ? output.relu() : output;
  }

  bool absorb_relu_before() override { return relu_ = true; }

 private:
  LayerOptions options_;
  bool relu_ = false;
};

class AvgPoolLayer : public Layer {
 public:
  explicit AvgPoolLayer(const LayerOptions& options) : options_(options) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    return at::avg_pool2d(input, options_.kernel, options_.stride, options_.padding);
  }

 private:
  LayerOptions options_;
};

/// What both have in common, once the kernel is known.
void plan_pool(LayerPlan& layer) {
  auto& options = layer.options;
  if (options.stride == 0) options.stride = options.kernel;
  if (options.padding > options.kernel / 2) {
    fail_layer(layer, "padding {} is more than half of kernel {}", options.padding, options.kernel);
  }
  slide_window(layer, layer.input.sizes[0]);
}

void plan_max(LayerPlan& layer, const tensor::DataSpec&) {
  require_image(layer);
  if (layer.options.kernel == 0) layer.options.kernel = 2;
  plan_pool(layer);
}

void plan_average(LayerPlan& layer, const tensor::DataSpec&) {
  require_image(layer);
  if (layer.options.kernel == 0) {
    if (layer.input.sizes[1] != layer.input.sizes[2]) {
      fail_layer(layer,
                 "without a kernel it averages the whole image, which must be square, but gets {}",
                 to_string(layer.input));
    }
    layer.options.kernel = layer.input.sizes[1];
  }
  plan_pool(layer);
}

template <class Pool>
std::shared_ptr<Layer> build_pool(const LayerPlan& layer) {
  return std::make_shared<Pool>(layer.options);
}

}  // namespace

// Torch's own module draws the first weights, so that they are torch's.
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

LayerType conv2d_type() {
  return {"conv2d", {"out", "kernel", "stride", "padding", "bias"}, plan_conv2d, build_conv2d};
}

LayerType maxpool_type() {
  return {"maxpool", {"kernel", "stride", "padding"}, plan_max, build_pool<MaxPoolLayer>};
}

LayerType avgpool_type() {
  return {"avgpool", {"kernel", "stride", "padding"}, plan_average, build_pool<AvgPoolLayer>};
}

}  // namespace cohort::model
