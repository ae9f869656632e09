#pragma once

#include <cohort/dataset.h>

#include "data/preprocessing/image_input.h"

namespace cohort {

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

}  // namespace cohort
