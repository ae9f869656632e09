#include "model/functions/functions.h"
#include "model/layers/basic_layers.h"

namespace cohort::model {
namespace {

/// A pre-norm transformer block: x += attention(norm(x)); x += mlp(norm(x)), where
///
///   attention = dropout(projection(attend(qkv(·))))     width → 3 width → width → width
///   mlp       = dropout(down(gelu(up(·))))              width → 4 width → width
///
/// Its linear layers are made without rows per sample, so their gradients never travel as factors.
class TransformerLayer : public Layer {
 public:
  explicit TransformerLayer(const LayerPlan& layer)
      : heads_(layer.options.heads), causal_(layer.options.causal) {
    const auto width = layer.input.sizes[1];
    const auto p = *layer.options.p;
    attention_norm_ = register_module("attention_norm", make_norm(width));
    qkv_ = register_module("qkv", std::make_shared<LinearLayer>(width, 3 * width, true));
    projection_ = register_module("projection", std::make_shared<LinearLayer>(width, width, true));
    mlp_norm_ = register_module("mlp_norm", make_norm(width));
    up_ = register_module("up", std::make_shared<LinearLayer>(width, 4 * width, true));
    down_ = register_module("down", std::make_shared<LinearLayer>(4 * width, width, true));
    attention_dropout_ = register_module(
        "attention_dropout", std::make_shared<DropoutLayer>(layer.number + "/attention", p));
    mlp_dropout_ =
        register_module("mlp_dropout", std::make_shared<DropoutLayer>(layer.number + "/mlp", p));
    start_as_torch_does();
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    auto value = attend(qkv_->forward(attention_norm_->forward(input)), heads_, causal_);
    auto middle = input + attention_dropout_->forward(projection_->forward(value));
    value = at::gelu(up_->forward(mlp_norm_->forward(middle)));
    return middle + mlp_dropout_->forward(down_->forward(value));
  }

  bool output_may_be_overwritten() const override { return true; }

 private:
  static torch::nn::LayerNorm make_norm(std::int64_t width) {
    return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
  }

  // torch::nn::MultiheadAttention's first weights; the other parts have their own.
  void start_as_torch_does() {
    torch::NoGradGuard no_grad;
    torch::nn::init::xavier_uniform_(qkv_->weight);
    qkv_->bias.zero_();
    projection_->bias.zero_();
  }

  std::int64_t heads_;
  bool causal_;
  torch::nn::LayerNorm attention_norm_{nullptr}, mlp_norm_{nullptr};
  std::shared_ptr<LinearLayer> qkv_, projection_, up_, down_;
  std::shared_ptr<DropoutLayer> attention_dropout_, mlp_dropout_;
};

void plan_transformer(LayerPlan& layer, const tensor::DataSpec&) {
  require_embedded(layer);
  if (!layer.input.is_sequence()) {
    fail_layer(layer, "it needs a sequence (positions x features), but gets {}",
               to_string(layer.input));
  }
  const auto width = layer.input.sizes[1];
  auto& options = layer.options;
  if (options.heads == 0) options.heads = 1;
  require_positive(layer, "heads", options.heads, "it is 1 or more");
  if (width % options.heads != 0) {
    fail_layer(layer, "its width {} cannot be divided by heads = {}", width, options.heads);
  }
  check_dropout_share(layer, 0);
  count_weights(layer, {12, width, width});  // 3 for attention, 1 after it, 2 times 4 above it.
}

std::shared_ptr<Layer> build_transformer(const LayerPlan& layer) {
  return std::make_shared<TransformerLayer>(layer);
}

}  // namespace

LayerType transformer_type() {
  return {"transformer", {"heads", "causal", "p"}, plan_transformer, build_transformer};
}

}  // namespace cohort::model
