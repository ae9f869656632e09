#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>

namespace cohort {

/// Samples stacked along dimension 0 of both tensors.
struct Batch {
  torch::Tensor input;
  torch::Tensor target;
};

/// A set of samples that can be asked for in any order. Cohort decides the order (a function of
/// seed and epoch) and which worker gets which sample; a dataset only answers.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;

  /// The samples at `indices`, in that order. Called from a background thread while the model
  /// computes, so it must not change the dataset.
  virtual Batch gather(std::span<const std::int64_t> indices) const = 0;

  /// The same, written over an earlier batch where it fits, so that no step touches fresh memory.
  /// `into` may be empty. Worth overriding only where gather() shows in a profile.
  virtual void gather_into(std::span<const std::int64_t> indices, Batch& into) const {
    into = gather(indices);
  }

  /// True where gather() only copies memory, and never waits for a disk or a network.
  virtual bool in_memory() const { return false; }
};

/// A dataset held in two tensors; sample i is row i of both.
class TensorDataset : public Dataset {
 public:
  /// Throws Error(invalid) unless both are CPU tensors with equally many rows.
  TensorDataset(torch::Tensor input, torch::Tensor target);

  std::int64_t size() const override { return input_.size(0); }
  Batch gather(std::span<const std::int64_t> indices) const override;
  void gather_into(std::span<const std::int64_t> indices, Batch& into) const override;
  bool in_memory() const override { return true; }

  const torch::Tensor& input() const { return input_; }
  const torch::Tensor& target() const { return target_; }

 private:
  torch::Tensor input_;
  torch::Tensor target_;
};

}  // namespace cohort
