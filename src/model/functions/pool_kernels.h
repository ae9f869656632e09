#pragma once

#include <cstdint>

namespace cohort {

/// A stack of equal images; the windows of a 2x2 pool with stride 2 that fit whole in them.
struct PoolSize {
  std::int64_t images = 0;  ///< Samples times channels.
  std::int64_t height = 0;  ///< Of an input image.
  std::int64_t width = 0;

  std::int64_t out_height() const { return height / 2; }
  std::int64_t out_width() const { return width / 2; }
};

/// output = the largest of each window, or 0 where that is negative and `relu` is set. `choice`
/// remembers, in a byte per output, which of the window's four it was (0 to 3 in reading order,
/// the first one of equals), or kNobody where ReLU cut it off. Not-a-numbers are passed on.
void max_pool_2x2_forward(const PoolSize& size, bool relu, const float* input, float* output,
                          std::uint8_t* choice);

/// Every output's gradient goes to the input that was chosen; all others get 0.
void max_pool_2x2_backward(const PoolSize& size, const float* output_grad,
                           const std::uint8_t* choice, float* input_grad);

constexpr std::int32_t kNobody = 4;

}  // namespace cohort
