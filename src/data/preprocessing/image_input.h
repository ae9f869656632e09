#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cohort {

/// How an image of bytes becomes a model's input: a pixel p becomes (p / 255 - mean) / deviation.
struct ImageInput {
  std::vector<std::int64_t> shape;  ///< Channels, height, width.
  double mean = 0.1307;             ///< Of MNIST's training pixels,
  double deviation = 0.3081;        ///< and their deviation.

  /// `count` pixels to floats, the same on every machine.
  void scale(const std::uint8_t* pixels, float* input, std::size_t count) const;
};

}  // namespace cohort
