#pragma once

#include <torch/torch.h>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace cohort::tensor {

/// The way from a tensor to an object that belongs to it. It links the two ends of the room that do
/// not know each other: layers (model/), which have only a parameter's tensor, and whoever moved
/// that parameter into flat memory or keeps it by rows (FlatSpace; a strategy's TableRows).
///
///   registry of              entry made and owned by           looked up by
///   GradientSink             FlatSpace, one per parameter      linear layers, in backward
///   ProductMark              a linear layer, for its weight    the exchange of factors (strategy/)
///   TableRows                a strategy that keeps tables      embeddings, in forward and backward
///   TableMark                an embedding, for its weight      FlatSpace, and tables_of()
///
/// There is one registry per kind and process, a static of the .cc file of that kind: replicas of a
/// model may run as threads of one process, and a tensor is the same object to all threads. The
/// registry owns nothing. Who makes an object holds the Entry with it, and the end of the Entry
/// takes it out of the registry; nobody else removes or replaces anything.
///
/// No entry is not an error: find() returns null, and the caller does what it would do without
/// (a layer gives its gradient to autograd, a parameter without mark is one like any other).
///
/// Threads: every call is safe on any thread. What find() returns is as safe as its owner says: the
/// owner must not end while a layer may still use it, which holds because a FlatSpace or strategy
/// ends only between steps, on the thread that runs the passes.
template <class Value>
class TensorRegistry {
 public:
  /// A tensor's entry, from construction to destruction. It keeps the tensor alive, so that the
  /// address it is known by cannot become that of another tensor. It is the last member of the
  /// value it leads to: added after all others are made, removed before any of them ends.
  class Entry {
   public:
    /// Where the tensor has an entry already (a new FlatSpace is made before the one of the group
    /// before has ended) the newest counts, and the end of the older one leaves it alone.
    Entry(TensorRegistry& registry, const torch::Tensor& tensor, Value* value)
        : registry_(registry), tensor_(tensor), value_(value) {
      const std::unique_lock lock(registry_.mutex_);
      registry_.values_[tensor_.unsafeGetTensorImpl()] = value_;
    }
    ~Entry() {
      const std::unique_lock lock(registry_.mutex_);
      const auto found = registry_.values_.find(tensor_.unsafeGetTensorImpl());
      if (found != registry_.values_.end() && found->second == value_) {
        registry_.values_.erase(found);
      }
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    TensorRegistry& registry_;
    torch::Tensor tensor_;
    Value* value_;
  };

  /// What belongs to `tensor`; null where nothing does.
  Value* find(const torch::Tensor& tensor) const {
    const std::shared_lock lock(mutex_);
    const auto found = values_.find(tensor.unsafeGetTensorImpl());
    return found == values_.end() ? nullptr : found->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const c10::TensorImpl*, Value*> values_;
};

}  // namespace cohort::tensor
