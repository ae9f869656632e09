// Batch norm over the batches of all workers: kernels on plain memory first, then statistics, then
// the node of autograd's graph. With n the values of a channel on all workers, a training step is
//
//   forward    sum x, n           summed over workers     mean = sum x / n
//              sum (x - mean)^2   summed over workers     variance = that / n
//              y = (x - mean) / sqrt(variance + epsilon) * weight + bias
//   backward   sum g, sum g (x - mean) of every channel, both in one sum over workers
//
// Every worker takes part in all three sums, also without samples, or the others would wait for it.
// Sums travel as doubles; where there is one worker nothing travels.
#include <cmath>
#include <vector>

#include "base/vectorize.h"
#include "model/functions/functions.h"
#include "tensor/step_context.h"

namespace cohort::model {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// [samples][channels][spots] floats without gaps; spots = height * width, or 1.
struct ChannelLayout {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::int64_t spots = 1;
};

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

/// sums[c] = the sum of channel c.
void channel_sums(const ChannelLayout& layout, const float* input, float* sums) {
  sum_rows(layout, sums, [&](std::int64_t, std::int64_t offset) {
    return plain_sum(input + offset, layout.spots);
  });
}

/// sums[c] = the sum of (input - mean[c])^2.
void channel_square_sums(const ChannelLayout& layout, const float* input, const float* mean,
                         float* sums) {
  sum_rows(layout, sums, [&](std::int64_t channel, std::int64_t offset) {
    return square_sum(input + offset, mean[channel], layout.spots);
  });
}

/// sums[c] = the sum of gradient * (input - mean[c]).
void channel_product_sums(const ChannelLayout& layout, const float* gradient, const float* input,
                          const float* mean, float* sums) {
  sum_rows(layout, sums, [&](std::int64_t channel, std::int64_t offset) {
    return product_sum(gradient + offset, input + offset, mean[channel], layout.spots);
  });
}

/// output = (input - mean[c]) * scale[c] + shift[c]
void normalize_channels(const ChannelLayout& layout, const float* input, const float* mean,
                        const float* scale, const float* shift, float* output) {
  for_each_row(layout, [&](std::int64_t channel, std::int64_t offset) {
    scale_row(input + offset, layout.spots, mean[channel], scale[channel], shift[channel],
              output + offset);
  });
}

/// The numbers of combine_channels(), one per channel each.
struct ChannelLine {
  const float* a;
  const float* b;
  const float* d;
  const float* mean;
};

/// result = a[c] * gradient + b[c] * (input - mean[c]) + d[c]
void combine_channels(const ChannelLayout& layout, const float* gradient, const float* input,
                      const ChannelLine& line, float* result) {
  for_each_row(layout, [&](std::int64_t channel, std::int64_t offset) {
    const Line row{line.a[channel], line.b[channel], line.d[channel], line.mean[channel]};
    combine_row(gradient + offset, input + offset, layout.spots, row, result + offset);
  });
}

/// By the stepper's function, which leads to the strategy (tensor/step_context.h). Where there is
/// none, this worker's numbers are all there are.
void sum_over_workers(Doubles& values) {
  const auto& sum = tensor::step_context().sum_over_workers;
  if (sum) sum(values);
}

ChannelLayout layout_of(const Tensor& input) {
  const auto spots = input.dim() == 4 ? input.size(2) * input.size(3) : 1;
  return {input.size(0), input.size(1), spots};
}

/// Of the batches of all workers.
struct Statistics {
  Floats mean;
  Floats variance;
  double count = 0;    ///< Values per channel.
  bool empty = false;  ///< No worker had any.
};

Floats divided(const Doubles& sums, double count) {
  Floats quotients;
  for (const double sum : sums) quotients.push_back(static_cast<float>(sum / count));
  return quotients;
}

// Mean first, then squares around it: one pass over both would lose the variance of values that
// are large compared to their spread.
Statistics global_statistics(const ChannelLayout& layout, const float* input) {
  const auto channels = static_cast<std::size_t>(layout.channels);
  Floats own(channels);
  channel_sums(layout, input, own.data());
  Doubles sums(own.begin(), own.end());
  sums.push_back(static_cast<double>(layout.samples * layout.spots));
  sum_over_workers(sums);

  Statistics result;
  result.empty = sums.back() == 0;
  result.count = std::max(sums.back(), 1.0);
  sums.pop_back();
  result.mean = divided(sums, result.count);
  channel_square_sums(layout, input, result.mean.data(), own.data());
  Doubles squares(own.begin(), own.end());
  sum_over_workers(squares);
  result.variance = divided(squares, result.count);
  return result;
}

/// As torch does: by the unbiased variance. A step in which no worker had a sample changes nothing.
void update_running(const BatchNormTensors& tensors, const Statistics& statistics) {
  if (statistics.empty) return;
  constexpr auto kNew = static_cast<float>(kBatchNormMomentum);
  const auto unbiased = static_cast<float>(statistics.count / std::max(statistics.count - 1, 1.0));
  auto* mean = tensors.running_mean.data_ptr<float>();
  auto* variance = tensors.running_var.data_ptr<float>();
  for (std::size_t c = 0; c < statistics.mean.size(); ++c) {
    mean[c] += kNew * (statistics.mean[c] - mean[c]);
    variance[c] += kNew * (statistics.variance[c] * unbiased - variance[c]);
  }
}

Tensor to_tensor(const Floats& values) {
  return torch::tensor(values);
}

struct BatchNormFunction : torch::autograd::Function<BatchNormFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& weight,
                        const Tensor& bias, const BatchNormTensors& tensors) {
    const Tensor input = given.contiguous();
    const auto layout = layout_of(input);
    const auto statistics = global_statistics(layout, input.data_ptr<float>());
    update_running(tensors, statistics);

    Floats inverse_deviation, scale;
    for (std::size_t c = 0; c < statistics.variance.size(); ++c) {
      const double deviation = std::sqrt(statistics.variance[c] + kBatchNormEpsilon);
      inverse_deviation.push_back(static_cast<float>(1 / deviation));
      scale.push_back(inverse_deviation[c] * weight.data_ptr<float>()[c]);
    }
    Tensor output = at::empty_like(input);
    normalize_channels(layout, input.data_ptr<float>(), statistics.mean.data(), scale.data(),
                       bias.data_ptr<float>(), output.data_ptr<float>());
    context->save_for_backward(
        {input, weight, to_tensor(statistics.mean), to_tensor(inverse_deviation)});
    context->saved_data["count"] = statistics.count;
    return output;
  }

  // With g the gradient, x^ the normalised input, n the count and means over the global batch:
  // input gradient = weight / deviation * (g - mean(g) - x^ * mean(g x^)).
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3];
    const Tensor grad = gradients[0].contiguous();
    const auto layout = layout_of(input);
    const auto channels = static_cast<std::size_t>(layout.channels);

    Floats own_sums(2 * channels);
    channel_sums(layout, grad.data_ptr<float>(), own_sums.data());
    channel_product_sums(layout, grad.data_ptr<float>(), input.data_ptr<float>(),
                         mean.data_ptr<float>(), own_sums.data() + channels);
    // This worker's own part: gradients of parameters are summed over the workers elsewhere.
    const Tensor own = to_tensor(own_sums).view({2, layout.channels});
    Doubles sums(own_sums.begin(), own_sums.end());
    sum_over_workers(sums);
    const Floats means = divided(sums, context->saved_data["count"].toDouble());

    Floats a(channels), b(channels), d(channels);
    for (std::size_t c = 0; c < channels; ++c) {
      const float over_deviation = inverse.data_ptr<float>()[c];
      a[c] = weight.data_ptr<float>()[c] * over_deviation;
      b[c] = -a[c] * over_deviation * over_deviation * means[channels + c];
      d[c] = -a[c] * means[c];
    }
    Tensor input_grad = at::empty_like(input);
    combine_channels(layout, grad.data_ptr<float>(), input.data_ptr<float>(),
                     {a.data(), b.data(), d.data(), mean.data_ptr<float>()},
                     input_grad.data_ptr<float>());
    return {input_grad, own[1] * inverse, own[0], Tensor()};
  }
};

}  // namespace

Tensor global_batch_norm(const Tensor& input, const BatchNormTensors& tensors) {
  return BatchNormFunction::apply(input, tensors.weight, tensors.bias, tensors);
}

}  // namespace cohort::model
