#include "model/layer_plan.h"

#include "model/layer_table.h"

namespace cohort {
namespace {

void check_end(const Shape& end, const DataSpec& spec) {
  Shape wanted{{spec.outputs}, false};
  if (spec.tokens) wanted.sizes = {spec.input_shape.at(0), spec.outputs};
  if (end == wanted) return;
  const char* what = spec.classes ? "classes" : "values to predict";
  if (end.sizes.size() == wanted.sizes.size() && !end.tokens) {
    fail(ErrorCode::invalid, "the network ends in {} outputs but the data has {} {}",
         end.sizes.back(), spec.outputs, what);
  }
  fail(ErrorCode::invalid,
       "the network ends in the shape {} but the data has {} {}, so it must end in {}; a linear "
       "layer at the end (after a flatten, where the input is an image) gives that",
       to_string(end), spec.outputs, what, to_string(wanted));
}

}  // namespace

void require_embedded(const LayerPlan& layer) {
  if (layer.input.tokens) {
    fail_layer(layer, "it gets {}; put an embedding layer before it", to_string(layer.input));
  }
}

void require_positive(const LayerPlan& layer, const char* key, std::int64_t value,
                      const char* hint) {
  if (value <= 0) fail_layer(layer, "{} = {} is not possible; {}", key, value, hint);
}

std::vector<LayerPlan> plan_layers(const std::vector<LayerOptions>& layers, const Shape& input,
                                   const DataSpec& spec, const std::string& prefix) {
  std::vector<LayerPlan> plans;
  Shape shape = input;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerPlan layer;
    layer.number = fmt::format("{}{}", prefix, i + 1);
    layer.type = &layer_type(layers[i].type, "layer " + layer.number);
    layer.options = layers[i];
    layer.input = shape;
    layer.output = shape;
    layer.type->plan(layer, spec);
    shape = layer.output;
    plans.push_back(std::move(layer));
  }
  return plans;
}

std::vector<LayerPlan> plan_network(const std::vector<LayerOptions>& layers, const DataSpec& spec) {
  if (layers.empty()) {
    fail(ErrorCode::invalid, "the model's list of layers is empty; it needs at least one layer");
  }
  auto plans = plan_layers(layers, Shape{spec.input_shape, spec.tokens}, spec);
  check_end(plans.back().output, spec);
  return plans;
}

}  // namespace cohort
