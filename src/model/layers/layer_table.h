#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/layers/layer.h"
#include "model/layers/layer_plan.h"

namespace cohort {

/// All there is to know of a type of layer. A new type is a function that returns one of these, in
/// a file of its own, and a line in layer_table.cc.
struct LayerType {
  std::string name;
  std::vector<std::string>
      keys;  ///< The fields of LayerOptions it reads, as a job file names them.

  /// Checks options and input shape, fills defaults in and sets the output shape (which is the
  /// input's before the call). Throws by fail_layer().
  void (*plan)(LayerPlan& layer, const DataSpec& spec);

  /// The layer with fresh weights. What it is given has been through plan().
  std::shared_ptr<Layer> (*build)(const LayerPlan& layer);
};

/// The names of all types.
const std::vector<std::string>& layer_types();

/// The keys of one type, `type` itself not among them. Throws Error(invalid) for an unknown type.
const std::vector<std::string>& layer_keys(const std::string& type);

/// Throws Error(invalid) for an unknown name; `place` says where it stands: "layer 3".
const LayerType& layer_type(const std::string& name, const std::string& place = "a layer");

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

}  // namespace cohort
