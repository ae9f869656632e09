#pragma once

#include <torch/torch.h>

namespace cohort {

/// The place of one parameter's gradient in the flat buffer. A layer that finds the sink of its
/// weight may write the gradient there itself in the backward pass, and return none to autograd:
/// then there is no temporary and no copy.
class GradientSink {
 public:
  /// The sink of `parameter`, or null where the parameter does not live in a FlatSpace (then the
  /// layer returns the gradient to autograd as usual).
  static GradientSink* of(const torch::Tensor& parameter);

  GradientSink(const torch::Tensor& parameter, torch::Tensor view);
  ~GradientSink();
  GradientSink(const GradientSink&) = delete;
  GradientSink& operator=(const GradientSink&) = delete;

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
  void begin_step() { written_ = false; }

 private:
  const c10::TensorImpl* parameter_;
  torch::Tensor view_;
  bool written_ = false;
};

}  // namespace cohort
