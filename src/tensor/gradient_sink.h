#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/tensor_registry.h"

namespace cohort::tensor {

/// Says of a weight that its gradient is a product: of the gradients of a layer's outputs and the
/// layer's inputs, of which every sample brings so many rows. A strategy may then ask for the two
/// factors (GradientSink::keep_factors), which for few rows are much smaller than the product.
///
/// Owned by the layer whose weight it is (LinearLayer), and in force from construction to
/// destruction; how it is found and by whom is in tensor_registry.h.
class ProductMark {
 public:
  ProductMark(const torch::Tensor& parameter, std::int64_t rows_per_sample);

  /// Of the mark that `parameter` has; nothing where it has none.
  static std::optional<std::int64_t> rows_per_sample(const torch::Tensor& parameter);

 private:
  std::int64_t rows_;
  TensorRegistry<ProductMark>::Entry entry_;
};

/// What the gradient of a weight [out, in] is made of: outputs^T * inputs.
struct GradientFactors {
  torch::Tensor outputs;  ///< Gradients of the layer's outputs: [rows, out].
  torch::Tensor inputs;   ///< [rows, in].
};

/// The place of one parameter's gradient in the flat buffer. A layer that finds the sink of its
/// weight may write the gradient there itself in the backward pass, and return none to autograd:
/// then there is no temporary and no copy.
///
/// Owned by the FlatSpace the parameter lives in, and found by layers through of() while that space
/// lives (tensor_registry.h). Not for several threads: all writes of a step come from the thread
/// that runs its backward passes. In a step:
///
///   begin_step()                     forgets what the step before left
///   write(), beta_for_write(), …     once per backward pass and use of the parameter
///   written(), factors()             read after the last backward pass
class GradientSink {
 public:
  /// The sink of `parameter`, or null where the parameter does not live in a FlatSpace (then the
  /// layer returns the gradient to autograd as usual).
  static GradientSink* of(const torch::Tensor& parameter);

  /// `view` has the parameter's shape; its memory outlives the sink.
  GradientSink(const torch::Tensor& parameter, torch::Tensor view);

  /// The gradient's place, with the parameter's shape.
  const torch::Tensor& view() const { return view_; }

  /// 0 where the next write is the first of this step (it overwrites), 1 where it must add. Every
  /// call announces a write.
  double beta_for_write() {
    const double beta = written_ ? 1 : 0;
    written_ = true;
    return beta;
  }

  /// Copies or adds `gradient`, as beta_for_write() says.
  void write(const torch::Tensor& gradient);

  bool written() const { return written_; }
  void begin_step() {
    written_ = false;
    factors_.clear();
  }

  /// From now on the layer leaves the factors of the gradient here and does not multiply them; who
  /// asked for that writes the gradient. Only for a parameter with a ProductMark. Whatever else
  /// wants to write() its gradient gets an Error(unsupported).
  void keep_factors() { keeps_factors_ = true; }
  bool keeps_factors() const { return keeps_factors_; }

  /// For the layer, once per backward pass through it. They are copied: the memory of a batch is
  /// used again by the next one, also within a step.
  void add_factors(const torch::Tensor& outputs, const torch::Tensor& inputs) {
    const auto copy = [](const torch::Tensor& factor) {
      return factor.detach().clone(at::MemoryFormat::Contiguous);
    };
    factors_.push_back({copy(outputs), copy(inputs)});
  }
  /// Of this step, in the order they came.
  const std::vector<GradientFactors>& factors() const { return factors_; }

 private:
  torch::Tensor view_;
  bool written_ = false;  ///< A write of this step was announced.
  bool keeps_factors_ = false;
  std::vector<GradientFactors> factors_;
  TensorRegistry<GradientSink>::Entry entry_;
};

}  // namespace cohort::tensor
