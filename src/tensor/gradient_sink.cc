#include "tensor/gradient_sink.h"

#include "base/fail.h"
#include "tensor/tensor_registry.h"

namespace cohort {
namespace {

TensorRegistry<GradientSink>& sinks() {
  static TensorRegistry<GradientSink> registry;
  return registry;
}

TensorRegistry<std::int64_t>& products() {
  static TensorRegistry<std::int64_t> registry;
  return registry;
}

}  // namespace

ProductMark::ProductMark(const torch::Tensor& parameter, std::int64_t rows_per_sample)
    : parameter_(parameter.unsafeGetTensorImpl()), rows_(rows_per_sample) {
  products().add(parameter_, &rows_);
}

ProductMark::~ProductMark() {
  products().remove(parameter_);
}

std::optional<std::int64_t> ProductMark::rows_per_sample(const torch::Tensor& parameter) {
  const std::int64_t* rows = products().find(parameter);
  return rows == nullptr ? std::nullopt : std::optional(*rows);
}

GradientSink* GradientSink::of(const torch::Tensor& parameter) {
  return sinks().find(parameter);
}

GradientSink::GradientSink(const torch::Tensor& parameter, torch::Tensor view)
    : parameter_(parameter.unsafeGetTensorImpl()), view_(std::move(view)) {
  sinks().add(parameter_, this);
}

GradientSink::~GradientSink() {
  sinks().remove(parameter_);
}

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

}  // namespace cohort
