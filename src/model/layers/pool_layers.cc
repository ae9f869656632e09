#include "model/functions/pool_function.h"
#include "model/layers/layer_table.h"
#include "model/layers/window.h"

namespace cohort {
namespace {

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

void plan_pool(LayerPlan& layer) {
  auto& options = layer.options;
  if (options.stride == 0) options.stride = options.kernel;
  if (options.padding > options.kernel / 2) {
    fail_layer(layer, "padding {} is more than half of kernel {}", options.padding, options.kernel);
  }
  slide_window(layer, layer.input.sizes[0]);
}

void plan_max(LayerPlan& layer, const DataSpec&) {
  require_image(layer);
  if (layer.options.kernel == 0) layer.options.kernel = 2;
  plan_pool(layer);
}

void plan_average(LayerPlan& layer, const DataSpec&) {
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
std::shared_ptr<Layer> build(const LayerPlan& layer) {
  return std::make_shared<Pool>(layer.options);
}

}  // namespace

LayerType maxpool_type() {
  return {"maxpool", {"kernel", "stride", "padding"}, plan_max, build<MaxPoolLayer>};
}

LayerType avgpool_type() {
  return {"avgpool", {"kernel", "stride", "padding"}, plan_average, build<AvgPoolLayer>};
}

}  // namespace cohort
