#pragma once

#include <cohort/dataset.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/preprocessing/inputs.h"

namespace cohort::data {

/// Datasets that are kept in memory, what gathering into a batch's buffers takes, and how
/// validation samples are set aside. TensorDataset (include/cohort/dataset.h) is defined in
/// datasets.cc too. All datasets are immutable: gather() may run on any number of threads.

// For gather_into():

/// Makes `buffer` a tensor of `rows` samples of this shape and type, in the memory it has where
/// that is large enough. What stands in it afterwards is not defined.
void fit_buffer(torch::Tensor& buffer, std::size_t rows, at::IntArrayRef sample_shape,
                at::ScalarType type);

/// Throws Error(invalid) unless every index is one of `samples` samples.
void check_indices(std::span<const std::int64_t> indices, std::int64_t samples);

/// Rows `indices` of a contiguous tensor, byte by byte, to `buffer`. Indices have been checked.
void copy_rows(const torch::Tensor& from, std::span<const std::int64_t> indices,
               torch::Tensor& buffer);

/// Images kept as bytes and turned into floats when they are gathered: a quarter of the memory, and
/// fewer bytes to fetch from it.
class ByteImages : public Dataset {
 public:
  /// `pixels`: uint8, samples × channels × height × width. `labels`: int64, one per sample.
  ByteImages(torch::Tensor pixels, torch::Tensor labels);

  std::int64_t size() const override { return pixels_.size(0); }
  Batch gather(std::span<const std::int64_t> indices) const override;
  void gather_into(std::span<const std::int64_t> indices, Batch& into) const override;
  bool in_memory() const override { return true; }

 private:
  torch::Tensor pixels_;
  torch::Tensor labels_;
  ImageInput scaling_;
};

/// Some samples of another dataset, as a dataset. Shares the other.
class Subset : public Dataset {
 public:
  /// Sample i is sample samples[i] of `whole`.
  Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> samples);

  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  Batch gather(std::span<const std::int64_t> indices) const override;
  void gather_into(std::span<const std::int64_t> indices, Batch& into) const override;
  bool in_memory() const override { return whole_->in_memory(); }

 private:
  std::vector<std::int64_t> in_whole(std::span<const std::int64_t> indices) const;

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> samples_;
};

/// Which samples train and which validate; each in ascending order.
struct Split {
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> validation;
};

/// Throws Error(invalid) unless `fraction` is above 0 and below 1.
void check_validation_fraction(double fraction);

/// Sets a part of 0 … samples-1 aside by a permutation that `seed` determines: `fraction` of them,
/// rounded, at least one. Throws Error(invalid) where `source` (named in the message) has fewer
/// than two samples.
Split split_samples(const std::string& source, std::int64_t samples, double fraction,
                    std::uint64_t seed);

/// 0 … samples-1: where all train.
std::vector<std::int64_t> all_rows(std::int64_t samples);

}  // namespace cohort::data
