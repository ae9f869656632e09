#pragma once

#include <torch/torch.h>

#include "tensor/gradient_sink.h"

namespace cohort {

/// What a linear layer's passes are made of, however many nodes of autograd's graph make them. All
/// but its last dimension is rows.

inline torch::Tensor as_rows(const torch::Tensor& tensor) {
  const auto features = tensor.size(-1);
  return tensor.dim() == 2 ? tensor : tensor.reshape({tensor.numel() / features, features});
}

inline torch::Tensor linear_product(const torch::Tensor& input, const torch::Tensor& weight,
                                    const torch::Tensor& bias, bool relu) {
  const torch::Tensor rows = as_rows(input);
  torch::Tensor result =
      bias.defined() ? at::addmm(bias, rows, weight.t()) : at::mm(rows, weight.t());
  if (relu) result.relu_();
  if (input.dim() == 2) return result;
  auto sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  return at::_unsafe_view(result, sizes);  // A view could not be overwritten.
}

/// Of the product before the ReLU, whose result is given where there is one.
inline torch::Tensor product_gradient(const torch::Tensor& gradient, const torch::Tensor& result) {
  const torch::Tensor rows = as_rows(gradient);
  return result.defined() ? at::threshold_backward(rows, as_rows(result), 0) : rows;
}

/// Goes to the weight's sink where it has one; nothing is returned then.
inline torch::Tensor weight_gradient(const torch::Tensor& weight, const torch::Tensor& gradient,
                                     const torch::Tensor& input) {
  auto* sink = GradientSink::of(weight);
  if (sink == nullptr) return at::mm(gradient.t(), input);
  if (sink->keeps_factors()) {
    sink->add_factors(gradient, input);
    return {};
  }
  torch::Tensor place = sink->view();
  if (sink->beta_for_write() == 0) {
    at::mm_out(place, gradient.t(), input);
  } else {
    place.addmm_(gradient.t(), input);
  }
  return {};
}

/// Likewise.
inline torch::Tensor bias_gradient(const torch::Tensor& bias, const torch::Tensor& gradient) {
  auto* sink = GradientSink::of(bias);
  if (sink == nullptr) return gradient.sum(0);
  torch::Tensor place = sink->view();
  if (sink->beta_for_write() == 0) {
    at::sum_out(place, gradient, {0});
  } else {
    place.add_(gradient.sum(0));
  }
  return {};
}

}  // namespace cohort
