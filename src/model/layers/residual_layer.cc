#include "model/layers/basic_layers.h"

namespace cohort::model {
namespace {

/// branch(input) + input; where the shapes differ, branch(input) + projection(input). The
/// projection is the smallest layer that makes one shape of the other: a 1x1 convolution of an
/// image, a linear layer of anything else, without bias in both cases.
class ResidualLayer : public Layer {
 public:
  ResidualLayer(std::shared_ptr<LayerSequence> branch, std::shared_ptr<Layer> projection)
      : branch_(std::move(branch)), projection_(std::move(projection)) {
    // The branch's layers stand directly below this one, so that they are named "3.1.weight".
    for (const auto& layer : branch_->named_children()) register_module(layer.key(), layer.value());
    if (projection_) register_module("projection", projection_);
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    const auto skip = projection_ ? projection_->forward(input) : input;
    const auto branch = branch_->forward(input);
    if (!branch_->output_may_be_overwritten()) return branch + skip;
    return torch::Tensor(branch).add_(skip);
  }

  bool output_may_be_overwritten() const override { return true; }

 private:
  std::shared_ptr<LayerSequence> branch_;
  std::shared_ptr<Layer> projection_;
};

/// The smallest stride with which a 1x1 window makes a side of `to` out of one of `from`; 0 where
/// no stride does.
std::int64_t stride_between(std::int64_t from, std::int64_t to) {
  const std::int64_t stride = (from - 1) / to + 1;  // A smaller one leaves more than `to`.
  return (from - 1) / stride + 1 == to ? stride : 0;
}

/// The same for both sides of an image; 0 where they would need different strides.
std::int64_t image_stride(const Shape& from, const Shape& to) {
  const auto stride = stride_between(from.sizes[1], to.sizes[1]);
  return stride != 0 && (from.sizes[2] - 1) / stride + 1 == to.sizes[2] ? stride : 0;
}

/// Whether make_projection() knows a layer between two shapes that differ.
bool can_project(const Shape& from, const Shape& to) {
  if (from.is_image() && to.is_image()) return image_stride(from, to) != 0;
  if (from.is_sequence() && to.is_sequence()) return from.sizes[0] == to.sizes[0];
  return from.is_flat() && to.is_flat();
}

/// Null where nothing has to be projected.
std::shared_ptr<Layer> make_projection(const Shape& from, const Shape& to) {
  if (from == to) return nullptr;
  if (!from.is_image()) {
    return std::make_shared<LinearLayer>(from.sizes.back(), to.sizes.back(), false);
  }
  return std::make_shared<Conv2dLayer>(torch::nn::Conv2dOptions(from.sizes[0], to.sizes[0], 1)
                                           .stride(image_stride(from, to))
                                           .bias(false));
}

void plan_residual(LayerPlan& layer, const tensor::DataSpec& spec) {
  if (layer.options.layers.empty()) {
    fail_layer(layer, "it needs layers = [ … ], the branch that is added to its input");
  }
  layer.nested = plan_layers(layer.options.layers, layer.input, spec, layer.number + ".");
  layer.output = layer.nested.back().output;
  if (layer.input != layer.output && !can_project(layer.input, layer.output)) {
    fail_layer(layer,
               "its branch turns {} into {}, which cannot be added to the input, not even through "
               "a 1x1 convolution or a linear layer; both must be images, sequences or flat",
               to_string(layer.input), to_string(layer.output));
  }
  if (layer.input != layer.output) {
    const std::size_t side = layer.input.is_image() ? 0 : layer.input.sizes.size() - 1;
    count_weights(layer, {layer.input.sizes[side], layer.output.sizes[side]});
  }
}

std::shared_ptr<Layer> build_residual(const LayerPlan& layer) {
  auto branch = std::make_shared<LayerSequence>(layer.nested);
  return std::make_shared<ResidualLayer>(branch, make_projection(layer.input, layer.output));
}

}  // namespace

LayerType residual_type() {
  return {"residual", {"layers"}, plan_residual, build_residual};
}

}  // namespace cohort::model
