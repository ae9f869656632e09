#include "model/functions/linear_function.h"

#include "model/functions/linear_parts.h"
#include "model/functions/travelling_linear.h"
#include "tensor/step_context.h"

namespace cohort {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const c10::optional<Tensor>& given_bias, bool relu) {
    const Tensor bias = given_bias.value_or(Tensor());
    const Tensor result = linear_product(input, weight, bias, relu);
    context->save_for_backward({as_rows(input), weight, bias, relu ? result : Tensor()});
    context->saved_data["sizes"] = input.sizes();
    return result;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &rows = saved[0], &weight = saved[1], &bias = saved[2];
    const Tensor grad = product_gradient(gradients[0], saved[3]);
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
  if (step_context().gradients_travel) return apply_travelling_linear(input, weight, bias, relu);
  using Optional = c10::optional<Tensor>;
  return LinearFunction::apply(input, weight, bias.defined() ? Optional(bias) : Optional(), relu);
}

}  // namespace cohort
