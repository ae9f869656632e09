// A linear layer's passes. There are two ways to hang them into autograd's graph, which compute the
// same numbers from the same parts:
//
//   gradients stay     one node; its backward makes the gradients of input, weight and bias
//   gradients travel   two nodes, so that the parameters' gradients are done, and on their way
//                      to the other workers, before the input's is computed:
//
//     input ── LinearProduct ── LinearParameters ── output
//                 3. input's       2. weight's, bias's      1. output's gradient
//
// Autograd hands a parameter's gradient on as soon as the node that makes it has ended. The second
// node costs some microseconds a layer, so it is not for those whose gradients do not travel.
#include "model/functions/functions.h"
#include "tensor/gradient_sink.h"
#include "tensor/step_context.h"

namespace cohort::model {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = c10::optional<Tensor>;

/// Autograd's functions take a tensor that may be missing as an optional.
Optional optional(const Tensor& tensor) {
  return tensor.defined() ? Optional(tensor) : Optional();
}

// The parts of both ways. All dimensions but the last are rows.

/// `tensor` as a matrix; a view where its memory allows that.
Tensor as_rows(const Tensor& tensor) {
  const auto features = tensor.size(-1);
  return tensor.dim() == 2 ? tensor : tensor.reshape({tensor.numel() / features, features});
}

/// The forward pass, without a trace in autograd's graph.
Tensor linear_product(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  const Tensor rows = as_rows(input);
  Tensor result = bias.defined() ? at::addmm(bias, rows, weight.t()) : at::mm(rows, weight.t());
  if (relu) result.relu_();
  if (input.dim() == 2) return result;
  auto sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  return at::_unsafe_view(result, sizes);  // A view could not be overwritten.
}

/// The gradient of the product before the ReLU, whose result is given where there is one.
Tensor product_gradient(const Tensor& gradient, const Tensor& result) {
  const Tensor rows = as_rows(gradient);
  return result.defined() ? at::threshold_backward(rows, as_rows(result), 0) : rows;
}

/// The gradient of the weight. Goes to its sink where it has one (or the two factors do, where the
/// sink keeps those); nothing is returned then, and autograd has nothing to add or to keep.
Tensor weight_gradient(const Tensor& weight, const Tensor& gradient, const Tensor& input) {
  auto* sink = tensor::GradientSink::of(weight);
  if (sink == nullptr) return at::mm(gradient.t(), input);
  if (sink->keeps_factors()) {
    sink->add_factors(gradient, input);
    return {};
  }
  Tensor place = sink->view();
  if (sink->beta_for_write() == 0) {
    at::mm_out(place, gradient.t(), input);
  } else {
    place.addmm_(gradient.t(), input);
  }
  return {};
}

/// The gradient of the bias, likewise.
Tensor bias_gradient(const Tensor& bias, const Tensor& gradient) {
  auto* sink = tensor::GradientSink::of(bias);
  if (sink == nullptr) return gradient.sum(0);
  Tensor place = sink->view();
  if (sink->beta_for_write() == 0) {
    at::sum_out(place, gradient, {0});
  } else {
    place.add_(gradient.sum(0));
  }
  return {};
}

/// The one node where gradients stay.
struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const Optional& given_bias, bool relu) {
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

/// The first node: last in the backward pass. To it the parameters are constants.
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

/// The second node. Leaves the product as it is; in the backward pass makes the gradients of the
/// parameters, and hands on that of the product before the ReLU.
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

/// Joins the two nodes; the first is left out where nobody needs the input's gradient.
Tensor apply_travelling_linear(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               bool relu) {
  const Tensor constant_bias = bias.defined() ? bias.detach() : bias;
  const Tensor product =
      input.requires_grad()
          ? LinearProduct::apply(input, weight.detach(), optional(constant_bias), relu)
          : linear_product(input, weight.detach(), constant_bias, relu);
  return LinearParameters::apply(product, input.detach(), weight, optional(bias), relu);
}

}  // namespace

Tensor apply_linear(const Tensor& input, const Tensor& weight, const Tensor& bias, bool relu) {
  if (!torch::GradMode::is_enabled()) return linear_product(input, weight, bias, relu);
  if (tensor::step_context().gradients_travel)
    return apply_travelling_linear(input, weight, bias, relu);
  return LinearFunction::apply(input, weight, optional(bias), relu);
}

}  // namespace cohort::model
