#include "tensor/gradient_sink.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace cohort {
namespace {

// Layers know a parameter only by its tensor, and replicas of a model may run as threads of one
// process, so the way from tensor to sink is one table of the process.
std::shared_mutex table_mutex;
std::unordered_map<const c10::TensorImpl*, GradientSink*>& table() {
  static std::unordered_map<const c10::TensorImpl*, GradientSink*> sinks;
  return sinks;
}

}  // namespace

GradientSink* GradientSink::of(const torch::Tensor& parameter) {
  const std::shared_lock lock(table_mutex);
  const auto found = table().find(parameter.unsafeGetTensorImpl());
  return found == table().end() ? nullptr : found->second;
}

GradientSink::GradientSink(const torch::Tensor& parameter, torch::Tensor view)
    : parameter_(parameter.unsafeGetTensorImpl()), view_(std::move(view)) {
  const std::unique_lock lock(table_mutex);
  table()[parameter_] = this;
}

GradientSink::~GradientSink() {
  const std::unique_lock lock(table_mutex);
  table().erase(parameter_);
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
