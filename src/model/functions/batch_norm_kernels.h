#pragma once

#include <cstdint>

namespace cohort {

/// [samples][channels][spots] floats without gaps; spots = height * width, or 1.
struct ChannelLayout {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::int64_t spots = 1;
};

/// sums[c] = the sum of channel c.
void channel_sums(const ChannelLayout& layout, const float* input, float* sums);

/// sums[c] = the sum of (input - mean[c])^2.
void channel_square_sums(const ChannelLayout& layout, const float* input, const float* mean,
                         float* sums);

/// sums[c] = the sum of gradient * (input - mean[c]).
void channel_product_sums(const ChannelLayout& layout, const float* gradient, const float* input,
                          const float* mean, float* sums);

/// output = (input - mean[c]) * scale[c] + shift[c]
void normalize_channels(const ChannelLayout& layout, const float* input, const float* mean,
                        const float* scale, const float* shift, float* output);

/// result = a[c] * gradient + b[c] * (input - mean[c]) + d[c]
struct ChannelLine {
  const float* a;
  const float* b;
  const float* d;
  const float* mean;
};
void combine_channels(const ChannelLayout& layout, const float* gradient, const float* input,
                      const ChannelLine& line, float* result);

}  // namespace cohort
