// Max pooling over windows of 2x2, alone or with the ReLU before it: kernels on plain memory first,
// then the node of autograd's graph that calls them. The backward pass needs one byte per output,
// the *choice*: which of the window's four values it was.
#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "base/vectorize.h"
#include "model/functions/functions.h"

namespace cohort::model {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// A stack of equal images; the windows of a 2x2 pool with stride 2 that fit whole in them.
struct PoolSize {
  std::int64_t images = 0;  ///< Samples times channels.
  std::int64_t height = 0;  ///< Of an input image.
  std::int64_t width = 0;

  std::int64_t out_height() const { return height / 2; }
  std::int64_t out_width() const { return width / 2; }
};

/// The choice of an output that ReLU cut off: no input gets its gradient.
constexpr std::int32_t kNobody = 4;

// Rows of small images are too short for vector code. So both directions work in two stages, on
// blocks of rows that fit in the first cache: one along whole input rows, one along all pairs of a
// block at once. All loops are free of branches, which is what compilers turn into vector code.
struct PoolBlock {
  std::int64_t rows = 0;   ///< Of the output.
  std::int64_t pairs = 0;  ///< Outputs in a row.
  std::int64_t width = 0;  ///< Of an input row; 2 * pairs, or one more.
};

/// Where stage 1 leaves what stage 2 goes on with; made once for all blocks.
struct Scratch {
  explicit Scratch(const PoolSize& size)
      : rows(std::max<std::int64_t>(1, 512 / std::max<std::int64_t>(1, size.out_width()))),
        value(static_cast<std::size_t>(2 * rows * size.out_width())),
        which(value.size()) {}

  std::int64_t rows;  ///< Output rows in a block.
  std::vector<float> value;
  std::vector<std::int32_t> which;
};

// `condition ? a : b` by bit masks: a branch here would be guessed wrong half of the time in the
// scalar code that handles the ends of rows.
inline std::int32_t pick(bool condition, std::int32_t a, std::int32_t b) {
  return b ^ ((a ^ b) & -static_cast<std::int32_t>(condition));
}
inline float pick(bool condition, float a, float b) {
  return std::bit_cast<float>(
      pick(condition, std::bit_cast<std::int32_t>(a), std::bit_cast<std::int32_t>(b)));
}

// Stage 1: the larger of every column of a window, which = 1 where that is the lower one. A value
// that differs from itself is not a number, and is taken so that it is not lost.
// Stage 2: the larger column. Of equals the first in reading order wins, as in torch.
COHORT_VECTORIZE
void forward_block(const PoolBlock block, const float* __restrict input, float floor,
                   Scratch& scratch, float* __restrict output, std::uint8_t* __restrict choice) {
  const std::int64_t columns = 2 * block.pairs;
  float* __restrict value = scratch.value.data();
  std::int32_t* __restrict which = scratch.which.data();
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const float* top = input + 2 * row * block.width;
    const float* bottom = top + block.width;
    for (std::int64_t i = 0; i < columns; ++i) {
      const bool lower = (bottom[i] > top[i]) | (bottom[i] != bottom[i]);
      value[row * columns + i] = pick(lower, bottom[i], top[i]);
      which[row * columns + i] = pick(lower, 2, 0);
    }
  }
  for (std::int64_t i = 0; i < block.rows * block.pairs; ++i) {
    const float left = value[2 * i], right = value[2 * i + 1];
    const std::int32_t left_which = which[2 * i], right_which = which[2 * i + 1];
    const bool take_right =
        (right > left) | (right != right) | ((right == left) & (right_which < left_which));
    const float best = pick(take_right, right, left);
    const std::int32_t chosen = pick(take_right, right_which + 1, left_which);
    output[i] = pick(best <= floor, floor, best);
    choice[i] = static_cast<std::uint8_t>(pick(best <= floor, kNobody, chosen));
  }
}

// Stage 1: gradient and choice for both columns of a window, the choice as the right one sees it.
// Stage 2: the upper row keeps the gradients chosen as 0, the lower one those chosen as 2.
COHORT_VECTORIZE
void backward_block(const PoolBlock block, const float* __restrict grad,
                    const std::uint8_t* __restrict choice, Scratch& scratch,
                    float* __restrict input_grad) {
  const std::int64_t columns = 2 * block.pairs;
  float* __restrict value = scratch.value.data();
  std::int32_t* __restrict which = scratch.which.data();
  for (std::int64_t i = 0; i < block.rows * block.pairs; ++i) {
    value[2 * i] = grad[i];
    value[2 * i + 1] = grad[i];
    which[2 * i] = choice[i];
    which[2 * i + 1] = choice[i] - 1;
  }
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* top = input_grad + 2 * row * block.width;
    float* bottom = top + block.width;
    for (std::int64_t i = 0; i < columns; ++i) {
      top[i] = pick(which[row * columns + i] == 0, value[row * columns + i], 0.0F);
      bottom[i] = pick(which[row * columns + i] == 2, value[row * columns + i], 0.0F);
    }
    if (columns < block.width) top[columns] = bottom[columns] = 0;
  }
}

/// Calls step(block, input offset, output offset) for all blocks of all images.
template <class Step>
void for_each_block(const PoolSize& size, const Scratch& scratch, Step step) {
  for (std::int64_t image = 0; image < size.images; ++image) {
    for (std::int64_t row = 0; row < size.out_height(); row += scratch.rows) {
      const PoolBlock block{std::min(scratch.rows, size.out_height() - row), size.out_width(),
                            size.width};
      step(block, (image * size.height + 2 * row) * size.width,
           (image * size.out_height() + row) * size.out_width());
    }
  }
}

/// output = the largest of each window, or 0 where that is negative and `relu` is set. `choice`
/// remembers, in a byte per output, which of the window's four it was (0 to 3 in reading order,
/// the first one of equals), or kNobody where ReLU cut it off. Not-a-numbers are passed on.
void max_pool_2x2_forward(const PoolSize& size, bool relu, const float* input, float* output,
                          std::uint8_t* choice) {
  const float floor = relu ? 0.0F : -std::numeric_limits<float>::infinity();
  Scratch scratch(size);
  for_each_block(size, scratch, [&](const PoolBlock& block, std::int64_t in, std::int64_t out) {
    forward_block(block, input + in, floor, scratch, output + out, choice + out);
  });
}

/// Every output's gradient goes to the input that was chosen; all others get 0.
void max_pool_2x2_backward(const PoolSize& size, const float* output_grad,
                           const std::uint8_t* choice, float* input_grad) {
  Scratch scratch(size);
  for_each_block(size, scratch, [&](const PoolBlock& block, std::int64_t in, std::int64_t out) {
    backward_block(block, output_grad + out, choice + out, scratch, input_grad + in);
  });
  if (size.height % 2 == 0) return;
  for (std::int64_t image = 0; image < size.images; ++image) {
    const std::int64_t last_row = (image + 1) * size.height - 1;
    std::fill_n(input_grad + last_row * size.width, size.width, 0.0F);
  }
}

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

}  // namespace cohort::model
