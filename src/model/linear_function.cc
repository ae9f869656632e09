#include "model/linear_function.h"

#include "tensor/gradient_sink.h"

namespace cohort {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = c10::optional<Tensor>;

Optional optional(const Tensor& tensor) {
  return tensor.defined() ? Optional(tensor) : Optional();
}

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

Tensor product_of(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  const Tensor rows = as_rows(input);
  Tensor result = bias.defined() ? at::addmm(bias, rows, weight.t()) : at::mm(rows, weight.t());
  if (relu) result.relu_();
  if (input.dim() == 2) return result;
  auto sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  return at::_unsafe_view(result, sizes);  // A view could not be overwritten.
}

/// A linear layer is two nodes of autograd's graph, so that in the backward pass the gradients of
/// its parameters come first, and can travel while the gradient of its input is computed: autograd
/// hands a parameter's gradient on as soon as the node that makes it has ended. This one comes
/// first in the forward and last in the backward pass; to it the parameters are constants.
struct LinearProduct : torch::autograd::Function<LinearProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const Optional& bias, bool relu) {
    context->save_for_backward({weight});
    context->saved_data["sizes"] = input.sizes();
    return product_of(input, weight, bias.value_or(Tensor()), relu);
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const Tensor weight = context->get_saved_variables()[0];
    const Tensor grad = at::mm(as_rows(gradients[0]), weight);
    return {grad.view(context->saved_data["sizes"].toIntVector()), {}, {}, {}};
  }
};

/// Leaves the product as it is; in the backward pass makes the gradients of the parameters, and
/// hands on that of the product before the ReLU.
struct LinearParameters : torch::autograd::Function<LinearParameters> {
  static Tensor forward(AutogradContext* context, Tensor product, const Tensor& input,
                        const Tensor& weight, const Optional& bias, bool relu) {
    context->mark_dirty({product});  // Else it would be a view, which could not be overwritten.
    context->save_for_backward(
        {as_rows(input), weight, bias.value_or(Tensor()), relu ? product : Tensor()});
    return product;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &rows = saved[0], &weight = saved[1], &bias = saved[2], &relu_result = saved[3];
    Tensor grad = as_rows(gradients[0]);
    if (relu_result.defined()) grad = at::threshold_backward(grad, as_rows(relu_result), 0);

    tensor_list result(5);
    if (context->needs_input_grad(0)) result[0] = grad.view(gradients[0].sizes());
    if (context->needs_input_grad(2)) result[2] = weight_gradient(weight, grad, rows);
    if (bias.defined() && context->needs_input_grad(3)) result[3] = bias_gradient(bias, grad);
    return result;
  }
};

}  // namespace

Tensor apply_linear(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  if (!torch::GradMode::is_enabled()) return product_of(input, weight, bias, relu);
  const Tensor constant_bias = bias.defined() ? bias.detach() : bias;
  const Tensor product =
      input.requires_grad()
          ? LinearProduct::apply(input, weight.detach(), optional(constant_bias), relu)
          : product_of(input, weight.detach(), constant_bias, relu);
  return LinearParameters::apply(product, input.detach(), weight, optional(bias), relu);
}

}  // namespace cohort
