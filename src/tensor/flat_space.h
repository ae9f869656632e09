#pragma once

#include <cohort/model.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tensor/flat_layout.h"
#include "tensor/gradient_sink.h"

namespace cohort::tensor {

/// A model whose parameters, gradients and float buffers live in flat memory. Gradients reach the
/// flat buffer as the backward pass produces them: the first one of a step overwrites what is
/// there, later ones (micro-batches, layers used twice) add. So nothing has to be set to zero, and
/// autograd never adds to a gradient.
///
///   layer that knows its sink      writes to the sink, gives autograd none  ┐
///   any other layer                gives autograd a gradient, and the hook  ├─ hook: ready?
///                                  below copies or adds it to the sink      ┘
///
/// A step is begin_step(), any number of forward and backward passes, begin_last_backward() before
/// the last backward pass, and finish_step(). A parameter is *ready* once its gradient is complete:
/// in the last backward pass when autograd is done with it, or else in finish_step().
///
/// One thread: that of the passes makes all calls, and the callback runs on it. It owns neither the
/// model nor the memory; both outlive it, and the model must not be used once the memory is gone.
class FlatSpace {
 public:
  /// Called when the gradient of parameter `index` is complete: in the last backward pass, or for
  /// parameters that it did not reach in finish_step().
  using GradientReady = std::function<void(std::size_t index)>;

  /// Makes the tensors of `model` views of `memory`, with the values that are there: see
  /// copy_values().
  FlatSpace(Model& model, const FlatMemory& memory, Tables tables = Tables::among_parameters);
  ~FlatSpace();
  FlatSpace(const FlatSpace&) = delete;
  FlatSpace& operator=(const FlatSpace&) = delete;

  const ModelLayout& layout() const;
  const FlatMemory& memory() const;

  /// Replaces the callback. What it throws leaves the backward pass, or finish_step().
  void on_gradient_ready(GradientReady callback);

  /// Where the gradient of parameter `index` goes; its mark is that of `parameter(index)`. Indices
  /// are those of layout().parameters.entries.
  GradientSink& sink(std::size_t index);
  const torch::Tensor& parameter(std::size_t index) const;

  /// Whether gradients that are ready are sent while the backward pass goes on: layers hurry then.
  /// Set by the strategy; the stepper tells layers (StepContext::gradients_travel).
  bool gradients_travel() const { return gradients_travel_; }
  void let_gradients_travel(bool travel) { gradients_travel_ = travel; }

  /// Before the first backward pass of a step.
  void begin_step();
  /// Before the last one (the only one, unless gradients accumulate): what is complete from now on
  /// is ready.
  void begin_last_backward();
  /// After the last one. Parameters that got no gradient in this step get zeros, and are ready.
  void finish_step();

 private:
  struct Parameter;
  class ReadyHook;

  void gradient_arrived(std::size_t index);
  void report_ready(std::size_t index);

  ModelLayout layout_;
  FlatMemory memory_;
  std::vector<std::unique_ptr<Parameter>> parameters_;  ///< As layout_.parameters.entries.
  GradientReady on_ready_;
  bool last_backward_ = false;
  bool gradients_travel_ = false;
};

}  // namespace cohort::tensor
