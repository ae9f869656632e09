// Dropout whose mask is arithmetic: no random generator has a state, so a row has the same mask on
// any worker, in any order, and in the backward pass, which makes it anew instead of keeping it.
//
//   key of the step and layer = mix(seed, step, characters of the layer's number)
//   key of a row              = mix(that key, the row's place in the global batch)
//   element e is dropped      where hash(key of the row, e) < p * 2^32
#include "model/functions/functions.h"

#include <cmath>

#include "base/vectorize.h"
#include "tensor/step_context.h"

namespace cohort::model {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// A well-mixed 64-bit number of two others (multiply and fold).
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a ^ (b + 0x9e3779b97f4a7c15U + (a << 6) + (a >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Element e of the row draws the 32-bit number hash(e); those below `threshold` are dropped. The
// hash is two rounds of multiply and shift with the row's key between them: vector code.
COHORT_VECTORIZE
void drop_row(const float* input, std::int64_t count, std::uint64_t row_key,
              std::uint32_t threshold, float scale, float* output) {
  const auto low = static_cast<std::uint32_t>(row_key);
  const auto high = static_cast<std::uint32_t>(row_key >> 32);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t h = static_cast<std::uint32_t>(i) * 0x9e3779b9U + low;
    h = (h ^ (h >> 16)) * 0x7feb352dU;
    h = (h ^ (h >> 15)) * 0x846ca68bU + high;
    h = (h ^ (h >> 16)) * 0x7feb352dU;
    h ^= h >> 15;
    output[i] = h < threshold ? 0.0F : input[i] * scale;
  }
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& input, std::int64_t key,
                        std::int64_t first_row, double p) {
    context->saved_data["key"] = key;
    context->saved_data["first_row"] = first_row;
    context->saved_data["p"] = p;
    return DropoutMask{static_cast<std::uint64_t>(key), first_row, p}.apply_to(input);
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const DropoutMask mask{static_cast<std::uint64_t>(context->saved_data["key"].toInt()),
                           context->saved_data["first_row"].toInt(),
                           context->saved_data["p"].toDouble()};
    return {mask.apply_to(gradients[0]), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

DropoutMask DropoutMask::of_this_step(const std::string& layer_number, double p) {
  const auto& context = tensor::step_context();
  std::uint64_t key = mix(context.seed, static_cast<std::uint64_t>(context.step));
  for (const char letter : layer_number) key = mix(key, static_cast<std::uint64_t>(letter));
  return {key, context.first_row, p};
}

Tensor DropoutMask::apply_to(const Tensor& input) const {
  const Tensor source = input.contiguous();
  Tensor result = at::empty_like(source);
  const auto rows = source.size(0);
  const auto row_size = rows == 0 ? 0 : source.numel() / rows;
  const auto threshold = static_cast<std::uint32_t>(std::min(p * 0x1p32, 0x1p32 - 1));
  const auto scale = static_cast<float>(1 / (1 - p));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto row_key = mix(key, static_cast<std::uint64_t>(first_row + row));
    drop_row(source.data_ptr<float>() + row * row_size, row_size, row_key, threshold, scale,
             result.data_ptr<float>() + row * row_size);
  }
  return result;
}

Tensor drop_elements(const Tensor& input, const DropoutMask& mask) {
  return DropoutFunction::apply(input, static_cast<std::int64_t>(mask.key), mask.first_row, mask.p);
}

}  // namespace cohort::model
