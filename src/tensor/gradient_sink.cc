#include "tensor/gradient_sink.h"

#include "tensor/tensor_registry.h"

namespace cohort {
namespace {

TensorRegistry<GradientSink>& sinks() {
  static TensorRegistry<GradientSink> registry;
  return registry;
}

}  // namespace

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
  if (beta_for_write() == 0) {
    view_.copy_(gradient);
  } else {
    view_.add_(gradient);
  }
}

}  // namespace cohort
