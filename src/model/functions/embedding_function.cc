// Looking up rows of a table. An ordinary weight is torch's business. A table that a strategy keeps
// apart (TableRows, found by the weight's tensor) is asked for its rows before they are read, and
// gets their gradients in the backward pass, while autograd gets none: a gradient as large as the
// table is never made. The table must live from the forward to the end of the backward pass; its
// strategy does.
#include "model/functions/functions.h"

#include "tensor/table_rows.h"

namespace cohort::model {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

std::span<const std::int64_t> ids_of(const Tensor& ids) {
  return {ids.data_ptr<std::int64_t>(), static_cast<std::size_t>(ids.numel())};
}

/// The lookup in a table kept apart; `ids` is contiguous.
struct TableFunction : torch::autograd::Function<TableFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& weight, const Tensor& ids) {
    context->save_for_backward({weight, ids});
    return at::embedding(weight, ids);
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor gradient = gradients[0].contiguous();
    tensor::TableRows::of(saved[0])->add_gradients(
        ids_of(saved[1]), {gradient.data_ptr<float>(), static_cast<std::size_t>(gradient.numel())});
    return {Tensor(), Tensor()};
  }
};

}  // namespace

Tensor apply_embedding(const Tensor& ids, const Tensor& weight) {
  tensor::TableRows* table = tensor::TableRows::of(weight);
  if (table == nullptr) return at::embedding(weight, ids);
  const Tensor whole = ids.contiguous();
  table->need(ids_of(whole));
  return TableFunction::apply(weight, whole);
}

}  // namespace cohort::model
