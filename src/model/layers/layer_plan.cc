#include "model/layers/layer_plan.h"

#include <fmt/ranges.h>

#include <span>

#include "base/fail.h"
#include "base/integers.h"
#include "base/memory_room.h"
#include "model/layers/layer.h"

namespace cohort::model {
namespace {

/// Four tebibytes of floats: of a sample on its way, or of weights.
constexpr std::int64_t kMostFloats = std::int64_t{1} << 40;

/// The product of `sizes`. Fails where it is too large, also where it has no room in 64 bits;
/// `what` is what the message calls it.
std::int64_t checked_floats(const LayerPlan& layer, const char* what,
                            std::span<const std::int64_t> sizes) {
  const auto floats = checked_product(sizes);
  if (floats && *floats <= kMostFloats) return *floats;
  fail_layer(layer, "its {} would be {} floats, more than any machine has room for", what,
             excerpt(fmt::format("{}", fmt::join(sizes, "x"))));
}

std::int64_t weights_of(const std::vector<LayerPlan>& layers) {
  std::int64_t sum = 0;
  for (const LayerPlan& layer : layers) sum += layer.weights + weights_of(layer.nested);
  return sum;
}

/// The last layer must give what the loss compares with the targets: an output for each class or
/// value; of text one at every position.
void check_end(const Shape& end, const tensor::DataSpec& spec) {
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

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const auto size : sizes) product *= size;
  return product;
}

std::string to_string(const Shape& shape) {
  return fmt::format("{}{}", fmt::join(shape.sizes, "x"), shape.tokens ? " tokens" : "");
}

void count_weights(LayerPlan& layer, std::initializer_list<std::int64_t> sizes) {
  layer.weights += checked_floats(layer, "weights", std::span(sizes.begin(), sizes.size()));
}

void require_embedded(const LayerPlan& layer) {
  if (layer.input.tokens) {
    fail_layer(layer, "it gets {}; put an embedding layer before it", to_string(layer.input));
  }
}

void require_positive(const LayerPlan& layer, const char* key, std::int64_t value,
                      const char* hint) {
  if (value <= 0) fail_layer(layer, "{} = {} is not possible; {}", key, value, hint);
}

// Follows the shape of one sample through the layers, by arithmetic alone: no tensor is made before
// all of it is known to fit, so a job with a wrong layer, or with one that would need more memory
// than there is, is refused by that layer's number before anything starts.
std::vector<LayerPlan> plan_layers(const std::vector<LayerOptions>& layers, const Shape& input,
                                   const tensor::DataSpec& spec, const std::string& prefix) {
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
    checked_floats(layer, "output", layer.output.sizes);
    shape = layer.output;
    plans.push_back(std::move(layer));
  }
  return plans;
}

std::vector<LayerPlan> plan_network(const std::vector<LayerOptions>& layers,
                                    const tensor::DataSpec& spec) {
  if (layers.empty()) {
    fail(ErrorCode::invalid, "the model's list of layers is empty; it needs at least one layer");
  }
  auto plans = plan_layers(layers, Shape{spec.input_shape, spec.tokens}, spec);
  check_end(plans.back().output, spec);
  const auto weights = static_cast<std::uint64_t>(weights_of(plans));
  check_memory_room(fmt::format("the model with its {} parameters", weights),
                    weights * sizeof(float));
  return plans;
}

}  // namespace cohort::model
