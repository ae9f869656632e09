#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/layers/layer.h"
#include "tensor/gradient_sink.h"

namespace cohort::model {

/// The layers that other layers are built of; those that nobody else needs are classes of their own
/// .cc files. They have torch's names, numbers and first weights.

/// torch::nn::Linear; computed by apply_linear(). In linear_layer.cc.
class LinearLayer : public Layer {
 public:
  /// `rows_per_sample`: how many rows of inputs a sample has; 0 where that is not known, and then
  /// the weight's gradient cannot travel as factors.
  LinearLayer(std::int64_t in, std::int64_t out, bool bias, std::int64_t rows_per_sample = 0);

  torch::Tensor forward(const torch::Tensor& input) override;
  bool absorb_relu_after() override;
  bool output_may_be_overwritten() const override { return !relu_; }

  torch::Tensor weight;
  torch::Tensor bias;  ///< Undefined where there is none.

 private:
  bool relu_ = false;
  /// Tells strategies that the gradient of `weight` is a product; in force while the layer lives.
  std::optional<tensor::ProductMark> product_;
};

/// torch::nn::Conv2d with square strides and paddings. In window_layers.cc.
class Conv2dLayer : public Layer {
 public:
  explicit Conv2dLayer(const torch::nn::Conv2dOptions& options);

  torch::Tensor forward(const torch::Tensor& input) override;
  bool output_may_be_overwritten() const override { return true; }

 private:
  torch::Tensor weight_;
  torch::Tensor bias_;  ///< Undefined where there is none.
  std::int64_t stride_;
  std::int64_t padding_;
};

/// max(0, input); in place where fuse_layers() found that nobody else needs the input.
class ReluLayer : public Layer {
 public:
  torch::Tensor forward(const torch::Tensor& input) override {
    if (!in_place_) return input.relu();
    torch::Tensor own = input;
    return own.relu_();
  }

  void work_in_place() { in_place_ = true; }

 private:
  bool in_place_ = false;
};

/// In training, drops a share `p` of the elements and scales the others up; identity otherwise.
/// Which ones is a function of the step context (tensor/step_context.h) and `number`, which is
/// different for every dropout of a model. In simple_layers.cc.
class DropoutLayer : public Layer {
 public:
  DropoutLayer(std::string number, double p) : number_(std::move(number)), p_(p) {}

  torch::Tensor forward(const torch::Tensor& input) override;

 private:
  std::string number_;
  double p_;
};

/// Fills the default of `p` in and fails unless it is 0 or more and below 1.
void check_dropout_share(LayerPlan& layer, double default_p);

/// Layers one after the other. Parameters are named by the layer's place, from 0: "0.weight",
/// "3.1.weight", as torch.nn.Sequential names them.
class LayerSequence : public Layer {
 public:
  /// Builds the layers with fresh weights, from torch's generator of random numbers.
  explicit LayerSequence(const std::vector<LayerPlan>& plans);

  torch::Tensor forward(const torch::Tensor& input) override;
  bool output_may_be_overwritten() const override;

 private:
  std::vector<std::shared_ptr<Layer>> running_;  ///< What is left after fuse_layers().
};

}  // namespace cohort::model
