#include "model/functions/batch_norm_function.h"

#include <cmath>
#include <vector>

#include "model/functions/batch_norm_kernels.h"
#include "tensor/step_context.h"

namespace cohort {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Floats = std::vector<float>;

using Doubles = std::vector<double>;

void sum_over_workers(Doubles& values) {
  const auto& sum = step_context().sum_over_workers;
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

}  // namespace cohort
