#include "model/functions/batch_norm_kernels.h"

#include <vector>

#include "base/vectorize.h"

namespace cohort {
namespace {

constexpr std::int64_t kLanes = 16;

// Sums in so many independent lanes: compilers may not reorder a plain float sum into vector code.
// It also keeps the rounding error of long sums small.
template <class Term>
__attribute__((always_inline)) inline float lane_sum(std::int64_t count, Term term) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  float sum = 0;
  for (; i < count; ++i) sum += term(i);
  for (const float lane : lanes) sum += lane;
  return sum;
}

COHORT_VECTORIZE
float plain_sum(const float* input, std::int64_t count) {
  return lane_sum(count, [=](std::int64_t i) { return input[i]; });
}

COHORT_VECTORIZE
float square_sum(const float* input, float mean, std::int64_t count) {
  return lane_sum(count, [=](std::int64_t i) { return (input[i] - mean) * (input[i] - mean); });
}

COHORT_VECTORIZE
float product_sum(const float* gradient, const float* input, float mean, std::int64_t count) {
  return lane_sum(count, [=](std::int64_t i) { return gradient[i] * (input[i] - mean); });
}

COHORT_VECTORIZE
void scale_row(const float* input, std::int64_t count, float mean, float scale, float shift,
               float* output) {
  for (std::int64_t i = 0; i < count; ++i) output[i] = (input[i] - mean) * scale + shift;
}

struct Line {
  float a, b, d, mean;
};
COHORT_VECTORIZE
void combine_row(const float* gradient, const float* input, std::int64_t count, Line line,
                 float* result) {
  for (std::int64_t i = 0; i < count; ++i) {
    result[i] = line.a * gradient[i] + line.b * (input[i] - line.mean) + line.d;
  }
}

/// Calls row(channel, offset) for the spots of every channel of every sample, in memory order.
template <class Row>
void for_each_row(const ChannelLayout& layout, Row row) {
  std::int64_t offset = 0;
  for (std::int64_t sample = 0; sample < layout.samples; ++sample) {
    for (std::int64_t channel = 0; channel < layout.channels; ++channel) {
      row(channel, offset);
      offset += layout.spots;
    }
  }
}

/// sums[c] = the sum over the samples of row(c, offset), added up in double.
template <class Row>
void sum_rows(const ChannelLayout& layout, float* sums, Row row) {
  std::vector<double> totals(static_cast<std::size_t>(layout.channels), 0.0);
  for_each_row(layout, [&](std::int64_t channel, std::int64_t offset) {
    totals[static_cast<std::size_t>(channel)] += row(channel, offset);
  });
  for (std::size_t channel = 0; channel < totals.size(); ++channel) {
    sums[channel] = static_cast<float>(totals[channel]);
  }
}

}  // namespace

void channel_sums(const ChannelLayout& layout, const float* input, float* sums) {
  sum_rows(layout, sums, [&](std::int64_t, std::int64_t offset) {
    return plain_sum(input + offset, layout.spots);
  });
}

void channel_square_sums(const ChannelLayout& layout, const float* input, const float* mean,
                         float* sums) {
  sum_rows(layout, sums, [&](std::int64_t channel, std::int64_t offset) {
    return square_sum(input + offset, mean[channel], layout.spots);
  });
}

void channel_product_sums(const ChannelLayout& layout, const float* gradient, const float* input,
                          const float* mean, float* sums) {
  sum_rows(layout, sums, [&](std::int64_t channel, std::int64_t offset) {
    return product_sum(gradient + offset, input + offset, mean[channel], layout.spots);
  });
}

void normalize_channels(const ChannelLayout& layout, const float* input, const float* mean,
                        const float* scale, const float* shift, float* output) {
  for_each_row(layout, [&](std::int64_t channel, std::int64_t offset) {
    scale_row(input + offset, layout.spots, mean[channel], scale[channel], shift[channel],
              output + offset);
  });
}

void combine_channels(const ChannelLayout& layout, const float* gradient, const float* input,
                      const ChannelLine& line, float* result) {
  for_each_row(layout, [&](std::int64_t channel, std::int64_t offset) {
    const Line row{line.a[channel], line.b[channel], line.d[channel], line.mean[channel]};
    combine_row(gradient + offset, input + offset, layout.spots, row, result + offset);
  });
}

}  // namespace cohort
