#include "train/loop/loss.h"

#include "base/nearest_name.h"

namespace cohort {
namespace {

torch::Tensor cross_entropy(const torch::Tensor& output, const torch::Tensor& target) {
  return torch::nn::functional::cross_entropy(output.flatten(0, -2), target.flatten());
}

torch::Tensor mean_squared_error(const torch::Tensor& output, const torch::Tensor& target) {
  return torch::mse_loss(output, target.view_as(output));
}

}  // namespace

LossFunction make_loss(const TrainOptions& options) {
  if (options.own_loss) return options.own_loss;
  check_known("train.loss", options.loss, {"cross-entropy", "mean-squared-error"});
  return options.loss == "cross-entropy" ? cross_entropy : mean_squared_error;
}

Hits count_hits(const torch::Tensor& output, const torch::Tensor& target) {
  const auto right = output.argmax(-1).eq(target).sum().item<std::int64_t>();
  return {static_cast<double>(right), static_cast<double>(target.numel())};
}

}  // namespace cohort
