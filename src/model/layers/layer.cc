#include "model/layers/layer.h"

#include "base/names.h"

namespace cohort::model {
namespace {

/// In the order in which messages list them.
const std::vector<LayerType>& table() {
  static const std::vector<LayerType> types = {
      linear_type(),  conv2d_type(),  batchnorm_type(), layernorm_type(), relu_type(),
      gelu_type(),    tanh_type(),    sigmoid_type(),   maxpool_type(),   avgpool_type(),
      dropout_type(), flatten_type(), embedding_type(), residual_type(),  transformer_type(),
  };
  return types;
}

}  // namespace

const std::vector<std::string>& layer_types() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& type : table()) result.push_back(type.name);
    return result;
  }();
  return names;
}

const LayerType& layer_type(const std::string& name, const std::string& place) {
  check_known(place + ": the type", name, layer_types());
  for (const auto& type : table()) {
    if (type.name == name) return type;
  }
  fail(ErrorCode::invalid, "{}: the type \"{}\" is unknown", place, name);
}

const std::vector<std::string>& layer_keys(const std::string& type) {
  return layer_type(type).keys;
}

}  // namespace cohort::model
