// Layers that bring numbers to mean 0 and deviation 1, and then to a learned mean and deviation: of
// a channel over the batch (batchnorm), or of a sample over its features (layernorm).
#include "model/functions/functions.h"
#include "model/layers/layer.h"

namespace cohort::model {
namespace {

/// torch::nn::BatchNorm1d and 2d; in training with the statistics of all workers' batches together,
/// otherwise with the running ones.
class BatchNormLayer : public Layer {
 public:
  explicit BatchNormLayer(std::int64_t channels) {
    tensors_.weight = register_parameter("weight", torch::ones({channels}));
    tensors_.bias = register_parameter("bias", torch::zeros({channels}));
    tensors_.running_mean = register_buffer("running_mean", torch::zeros({channels}));
    tensors_.running_var = register_buffer("running_var", torch::ones({channels}));
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    if (is_training()) return global_batch_norm(input, tensors_);
    return at::batch_norm(input, tensors_.weight, tensors_.bias, tensors_.running_mean,
                          tensors_.running_var, false, kBatchNormMomentum, kBatchNormEpsilon,
                          false);
  }

  bool output_may_be_overwritten() const override { return true; }

 private:
  BatchNormTensors tensors_;
};

/// torch::nn::LayerNorm over the last dimensions, whose sizes are given.
class LayerNormLayer : public Layer {
 public:
  explicit LayerNormLayer(std::vector<std::int64_t> sizes)
      : sizes_(std::move(sizes)),
        weight_(register_parameter("weight", torch::ones(sizes_))),
        bias_(register_parameter("bias", torch::zeros(sizes_))) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    return at::layer_norm(input, sizes_, weight_, bias_);
  }

 private:
  std::vector<std::int64_t> sizes_;
  torch::Tensor weight_;
  torch::Tensor bias_;
};

void plan_batch_norm(LayerPlan& layer, const tensor::DataSpec&) {
  if (!layer.input.is_image() && !layer.input.is_flat()) {
    fail_layer(layer, "it needs an image or a flat input, but gets {}; layernorm suits sequences",
               to_string(layer.input));
  }
}

std::shared_ptr<Layer> build_batch_norm(const LayerPlan& layer) {
  return std::make_shared<BatchNormLayer>(layer.input.sizes[0]);
}

void plan_layer_norm(LayerPlan& layer, const tensor::DataSpec&) {
  require_embedded(layer);
}

std::shared_ptr<Layer> build_layer_norm(const LayerPlan& layer) {
  // Over the features of every position, as transformers do; over the whole of an image.
  auto sizes = layer.input.sizes;
  if (layer.input.is_sequence()) sizes.erase(sizes.begin());
  return std::make_shared<LayerNormLayer>(sizes);
}

}  // namespace

LayerType batchnorm_type() {
  return {"batchnorm", {}, plan_batch_norm, build_batch_norm};
}

LayerType layernorm_type() {
  return {"layernorm", {}, plan_layer_norm, build_layer_norm};
}

}  // namespace cohort::model
