#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "model/layers/layer_plan.h"

namespace cohort::model {

/// A layer that is built: one input, one output, both with the samples along dimension 0, of which
/// there may be none (a worker without rows runs its layers too, since batch norm talks to the
/// other workers). Parameters, buffers and sub-layers are registered as in any torch module; their
/// names are those of the saved model.
///
/// A layer is used by one thread at a time. What it may know beyond its input it looks up:
/// tensor/step_context.h, tensor/tensor_registry.h.
///
/// The last three let a sequence save passes over memory; fuse_layers() in layer_sequence.cc uses
/// them and says how.
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

/// All there is to know of a type of layer. A new type is a function that returns one of these,
/// declared below, and a line in the table of layer.cc.
struct LayerType {
  /// As a job file names it: "conv2d".
  std::string name;
  /// The fields of LayerOptions it reads, as a job file names them.
  std::vector<std::string> keys;

  /// Checks options and input shape, fills defaults in and sets the output shape (which is the
  /// input's before the call). Throws by fail_layer().
  void (*plan)(LayerPlan& layer, const tensor::DataSpec& spec);

  /// The layer with fresh weights. What it is given has been through plan().
  std::shared_ptr<Layer> (*build)(const LayerPlan& layer);
};

/// The names of all types.
const std::vector<std::string>& layer_types();

/// The keys of one type, `type` itself not among them. Throws Error(invalid) for an unknown type.
const std::vector<std::string>& layer_keys(const std::string& type);

/// Throws Error(invalid) for an unknown name; `place` says where it stands: "layer 3".
const LayerType& layer_type(const std::string& name, const std::string& place = "a layer");

// One for every type; each is defined beside the class it builds.
LayerType linear_type();
LayerType conv2d_type();
LayerType batchnorm_type();
LayerType layernorm_type();
LayerType relu_type();
LayerType gelu_type();
LayerType tanh_type();
LayerType sigmoid_type();
LayerType maxpool_type();
LayerType avgpool_type();
LayerType dropout_type();
LayerType flatten_type();
LayerType embedding_type();
LayerType residual_type();
LayerType transformer_type();

}  // namespace cohort::model
