#include "model/linear_function.h"

#include "tensor/gradient_sink.h"

namespace cohort {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

Tensor as_rows(const Tensor& tensor) {
  const auto features = tensor.size(-1);
  return tensor.dim() == 2 ? tensor : tensor.reshape({tensor.numel() / features, features});
}

Tensor weight_gradient(const Tensor& weight, const Tensor& grad, const Tensor& input) {
  auto* sink = GradientSink::of(weight);
  if (sink == nullptr) return at::mm(grad.t(), input);
  Tensor place = sink->view();
  if (sink->beta_for_write() == 0) {
    at::mm_out(place, grad.t(), input);
  } else {
    place.addmm_(grad.t(), input);
  }
  return {};
}

Tensor bias_gradient(const Tensor& bias, const Tensor& grad) {
  auto* sink = GradientSink::of(bias);
  if (sink == nullptr) return grad.sum(0);
  Tensor place = sink->view();
  if (sink->beta_for_write() == 0) {
    at::sum_out(place, grad, {0});
  } else {
    place.add_(grad.sum(0));
  }
  return {};
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const c10::optional<Tensor>& given_bias, bool relu) {
    const Tensor bias = given_bias.value_or(Tensor());
    const Tensor rows = as_rows(input);
    Tensor result = bias.defined() ? at::addmm(bias, rows, weight.t()) : at::mm(rows, weight.t());
    if (relu) result.relu_();
    if (input.dim() != 2) {
      auto sizes = input.sizes().vec();
      sizes.back() = weight.size(0);
      result = at::_unsafe_view(result, sizes);  // A view could not be overwritten.
    }
    context->save_for_backward({rows, weight, bias, relu ? result : Tensor()});
    context->saved_data["sizes"] = input.sizes();
    return result;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &rows = saved[0], &weight = saved[1], &bias = saved[2], &relu_result = saved[3];
    Tensor grad = as_rows(gradients[0]);
    if (relu_result.defined()) grad = at::threshold_backward(grad, as_rows(relu_result), 0);

    tensor_list result(4);
    if (context->needs_input_grad(0)) {
      result[0] = at::mm(grad, weight).view(context->saved_data["sizes"].toIntVector());
    }
    if (context->needs_input_grad(1)) result[1] = weight_gradient(weight, grad, rows);
    if (bias.defined() && context->needs_input_grad(2)) result[2] = bias_gradient(bias, grad);
    return result;
  }
};

}  // namespace

Tensor apply_linear(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  using Optional = c10::optional<Tensor>;
  return LinearFunction::apply(input, weight, bias.defined() ? Optional(bias) : Optional(), relu);
}

}  // namespace cohort
