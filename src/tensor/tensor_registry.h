#pragma once

#include <torch/torch.h>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace cohort {

/// The way from a tensor to what belongs to it. Layers know a parameter only by its tensor, and
/// replicas of a model may run as threads of one process, so there is one table per process.
template <class Value>
class TensorRegistry {
 public:
  Value* find(const torch::Tensor& tensor) const {
    const std::shared_lock lock(mutex_);
    const auto found = values_.find(tensor.unsafeGetTensorImpl());
    return found == values_.end() ? nullptr : found->second;
  }

  void add(const c10::TensorImpl* tensor, Value* value) {
    const std::unique_lock lock(mutex_);
    values_[tensor] = value;
  }

  void remove(const c10::TensorImpl* tensor) {
    const std::unique_lock lock(mutex_);
    values_.erase(tensor);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const c10::TensorImpl*, Value*> values_;
};

}  // namespace cohort
