#include "model/functions/batch_norm_function.h"
#include "model/layers/layer_table.h"

namespace cohort {
namespace {

/// torch::nn::BatchNorm1d and 2d, with the statistics of all workers' batches together.
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

void plan(LayerPlan& layer, const DataSpec&) {
  if (!layer.input.is_image() && !layer.input.is_flat()) {
    fail_layer(layer, "it needs an image or a flat input, but gets {}; layernorm suits sequences",
               to_string(layer.input));
  }
}

std::shared_ptr<Layer> build(const LayerPlan& layer) {
  return std::make_shared<BatchNormLayer>(layer.input.sizes[0]);
}

}  // namespace

LayerType batchnorm_type() {
  return {"batchnorm", {}, plan, build};
}

}  // namespace cohort
