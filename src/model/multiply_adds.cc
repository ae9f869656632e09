#include "model/multiply_adds.h"

#include "model/layers/layer_plan.h"
#include "model/presets.h"

namespace cohort {
namespace {

/// Where a layer's weights are applied anew: the pixels of an image, the positions of a sequence.
double positions(const Shape& output) {
  double count = 1;
  if (output.is_sequence()) count = static_cast<double>(output.sizes[0]);
  if (output.is_image()) count = static_cast<double>(output.sizes[1] * output.sizes[2]);
  return count;
}

double work_of(const std::vector<LayerPlan>& plans) {
  double sum = 0;
  for (const LayerPlan& plan : plans) {
    const bool looked_up = plan.input.tokens;
    if (!looked_up) sum += static_cast<double>(plan.weights) * positions(plan.output);
    sum += work_of(plan.nested);
  }
  return sum;
}

}  // namespace

std::optional<double> multiply_adds(const ModelOptions& options, const DataSpec& spec) {
  if (options.make || !options.torchscript.empty()) return std::nullopt;
  return work_of(
      plan_network(options.preset.empty() ? options.layers : preset_layers(options, spec), spec));
}

}  // namespace cohort
