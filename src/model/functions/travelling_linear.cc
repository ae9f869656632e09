#include "model/functions/travelling_linear.h"

#include "model/functions/linear_parts.h"

namespace cohort {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = c10::optional<Tensor>;

Optional optional(const Tensor& tensor) {
  return tensor.defined() ? Optional(tensor) : Optional();
}

/// First in the forward and last in the backward pass; to it the parameters are constants.
struct LinearProduct : torch::autograd::Function<LinearProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const Optional& bias, bool relu) {
    context->save_for_backward({weight});
    context->saved_data["sizes"] = input.sizes();
    return linear_product(input, weight, bias.value_or(Tensor()), relu);
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
    const Tensor &rows = saved[0], &weight = saved[1], &bias = saved[2];
    const Tensor grad = product_gradient(gradients[0], saved[3]);
    tensor_list result(5);
    if (context->needs_input_grad(0)) result[0] = grad.view(gradients[0].sizes());
    if (context->needs_input_grad(2)) result[2] = weight_gradient(weight, grad, rows);
    if (bias.defined() && context->needs_input_grad(3)) result[3] = bias_gradient(bias, grad);
    return result;
  }
};

}  // namespace

Tensor apply_travelling_linear(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               bool relu) {
  if (!torch::GradMode::is_enabled()) return linear_product(input, weight, bias, relu);
  const Tensor constant_bias = bias.defined() ? bias.detach() : bias;
  const Tensor product =
      input.requires_grad()
          ? LinearProduct::apply(input, weight.detach(), optional(constant_bias), relu)
          : linear_product(input, weight.detach(), constant_bias, relu);
  return LinearParameters::apply(product, input.detach(), weight, optional(bias), relu);
}

}  // namespace cohort
