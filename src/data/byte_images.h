#pragma once

#include <cohort/dataset.h>

namespace cohort {

/// Images kept as bytes and turned into floats when they are gathered: a quarter of the memory, and
/// fewer bytes to fetch from it. A pixel p becomes (p / 255 - mean) / deviation.
class ByteImages : public Dataset {
 public:
  /// The mean and deviation of MNIST's training pixels.
  static constexpr double kMnistMean = 0.1307;
  static constexpr double kMnistDeviation = 0.3081;

  /// `pixels`: uint8, samples × channels × height × width. `labels`: int64, one per sample.
  ByteImages(torch::Tensor pixels, torch::Tensor labels, double mean = kMnistMean,
             double deviation = kMnistDeviation);

  std::int64_t size() const override { return pixels_.size(0); }
  Batch gather(std::span<const std::int64_t> indices) const override;
  void gather_into(std::span<const std::int64_t> indices, Batch& into) const override;
  bool in_memory() const override { return true; }

 private:
  torch::Tensor pixels_;
  torch::Tensor labels_;
  float centre_;  ///< On the scale of the bytes.
  float factor_;
};

}  // namespace cohort
