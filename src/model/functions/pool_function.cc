#include "model/functions/pool_function.h"

#include "model/functions/pool_kernels.h"

namespace cohort {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

PoolSize pool_size(at::IntArrayRef sizes) {
  return {sizes[0] * sizes[1], sizes[2], sizes[3]};
}

struct MaxPoolFunction : torch::autograd::Function<MaxPoolFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& images, bool relu) {
    const Tensor input = images.contiguous();
    const auto size = pool_size(input.sizes());
    const auto shape = {input.size(0), input.size(1), size.out_height(), size.out_width()};
    Tensor output = at::empty(shape, input.options());
    Tensor choice = at::empty(shape, input.options().dtype(at::kByte));
    max_pool_2x2_forward(size, relu, input.data_ptr<float>(), output.data_ptr<float>(),
                         choice.data_ptr<std::uint8_t>());
    context->save_for_backward({choice});
    context->saved_data["sizes"] = images.sizes();
    return output;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const Tensor choice = context->get_saved_variables()[0];
    const Tensor grad = gradients[0].contiguous();
    Tensor input_grad = at::empty(context->saved_data["sizes"].toIntVector(), grad.options());
    max_pool_2x2_backward(pool_size(input_grad.sizes()), grad.data_ptr<float>(),
                          choice.data_ptr<std::uint8_t>(), input_grad.data_ptr<float>());
    return {input_grad, Tensor()};
  }
};

}  // namespace

Tensor max_pool_2x2(const Tensor& images, bool relu) {
  return MaxPoolFunction::apply(images, relu);
}

}  // namespace cohort
