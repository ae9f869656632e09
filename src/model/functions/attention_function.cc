// Attention, a head of a sample at a time. With q, k and v [positions, head width] of a head,
//
//   scores = q k^T / sqrt(head width) + mask     weights = softmax(scores)     output = weights v
//
// q, k and v are narrow views of the projection's output, and the gradients are written to the same
// views of its gradient: BLAS takes matrices with gaps between rows. Kept for the backward pass are
// the projection and the weights, not the scores.
#include "model/functions/functions.h"

#include <cmath>
#include <limits>

namespace cohort::model {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// The parts of one head of one sample in a [samples, positions, 3 * width] tensor.
struct Head {
  Tensor query, key, value;

  Head(const Tensor& qkv, std::int64_t sample, std::int64_t head, std::int64_t head_width) {
    const Tensor rows = qkv.select(0, sample);
    const auto width = qkv.size(2) / 3;
    query = rows.narrow(1, head * head_width, head_width);
    key = rows.narrow(1, width + head * head_width, head_width);
    value = rows.narrow(1, 2 * width + head * head_width, head_width);
  }
};

/// Added to the scores: minus infinity where a position must not look.
Tensor causal_mask(std::int64_t positions) {
  return at::full({positions, positions}, -std::numeric_limits<float>::infinity()).triu_(1);
}

double score_scale(std::int64_t head_width) {
  return 1 / std::sqrt(static_cast<double>(head_width));
}

/// The node of autograd's graph. Scores live in one buffer that all heads share.
struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& given, std::int64_t heads,
                        bool causal) {
    const Tensor qkv = given.contiguous();
    const auto samples = qkv.size(0), positions = qkv.size(1), width = qkv.size(2) / 3;
    const auto head_width = width / heads;
    const Tensor mask = causal ? causal_mask(positions) : at::zeros({positions, positions});
    Tensor output = at::empty({samples, positions, width}, qkv.options());
    Tensor weights = at::empty({samples, heads, positions, positions}, qkv.options());
    Tensor scores = at::empty({positions, positions}, qkv.options());
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const Head part(qkv, sample, head, head_width);
        at::addmm_out(scores, mask, part.query, part.key.t(), causal ? 1 : 0,
                      score_scale(head_width));
        Tensor weight = weights.select(0, sample).select(0, head);
        at::_softmax_out(weight, scores, 1, false);
        Tensor out = output.select(0, sample).narrow(1, head * head_width, head_width);
        at::mm_out(out, weight, part.value);
      }
    }
    context->save_for_backward({qkv, weights});
    return output;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &qkv = saved[0], &weights = saved[1];
    const Tensor grad = gradients[0].contiguous();
    const auto samples = weights.size(0), heads = weights.size(1), positions = weights.size(2);
    const auto head_width = grad.size(2) / heads;
    const auto scale = score_scale(head_width);
    Tensor qkv_grad = at::empty_like(qkv);
    Tensor weight_grad = at::empty({positions, positions}, qkv.options());
    Tensor score_grad = at::empty_like(weight_grad);
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const Head part(qkv, sample, head, head_width);
        Head part_grad(qkv_grad, sample, head, head_width);
        const Tensor out_grad = grad.select(0, sample).narrow(1, head * head_width, head_width);
        const Tensor weight = weights.select(0, sample).select(0, head);
        at::mm_out(part_grad.value, weight.t(), out_grad);
        at::mm_out(weight_grad, out_grad, part.value.t());
        at::_softmax_backward_data_out(score_grad, weight_grad, weight, 1, at::kFloat);
        // Where the mask was, weights are 0 and so is the gradient of the score.
        at::addmm_out(part_grad.query, part_grad.query, score_grad, part.key, 0, scale);
        at::addmm_out(part_grad.key, part_grad.key, score_grad.t(), part.query, 0, scale);
      }
    }
    return {qkv_grad, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor attend(const Tensor& qkv, std::int64_t heads, bool causal) {
  return AttentionFunction::apply(qkv, heads, causal);
}

}  // namespace cohort::model
