#pragma once

#include <torch/torch.h>

namespace cohort {

/// A layer that is built: one input, one output, both with the samples along dimension 0, of which
/// there may be none. Parameters, buffers and sub-layers are registered as in any torch module.
///
/// The last three let a sequence save passes over memory; fuse_layers.cc uses them and says how.
class Layer : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;

  /// Makes the layer apply a ReLU to its input, or to its output, itself. False: it cannot.
  virtual bool absorb_relu_before() { return false; }
  virtual bool absorb_relu_after() { return false; }

  /// Whether the output is memory of its own that the backward pass does not look at again, so
  /// that the next layer may work in place.
  virtual bool output_may_be_overwritten() const { return false; }
};

}  // namespace cohort
