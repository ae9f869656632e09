#include "tensor/gradient_sink.h"

#include "base/fail.h"

namespace cohort::tensor {
namespace {

TensorRegistry<GradientSink>& sinks() {
  static TensorRegistry<GradientSink> registry;
  return registry;
}

TensorRegistry<ProductMark>& products() {
  static TensorRegistry<ProductMark> registry;
  return registry;
}

}  // namespace

ProductMark::ProductMark(const torch::Tensor& parameter, std::int64_t rows_per_sample)
    : rows_(rows_per_sample), entry_(products(), parameter, this) {}

std::optional<std::int64_t> ProductMark::rows_per_sample(const torch::Tensor& parameter) {
  const ProductMark* mark = products().find(parameter);
  return mark == nullptr ? std::nullopt : std::optional(mark->rows_);
}

GradientSink* GradientSink::of(const torch::Tensor& parameter) {
  return sinks().find(parameter);
}

GradientSink::GradientSink(const torch::Tensor& parameter, torch::Tensor view)
    : view_(std::move(view)), entry_(sinks(), parameter, this) {}

void GradientSink::write(const torch::Tensor& gradient) {
  torch::NoGradGuard no_grad;
  if (keeps_factors_) {
    fail(ErrorCode::unsupported,
         "a weight of a linear layer has a gradient beside the layer's own; set strategy.factors "
         "to false");
  }
  if (beta_for_write() == 0) {
    view_.copy_(gradient);
  } else {
    view_.add_(gradient);
  }
}

}  // namespace cohort::tensor
