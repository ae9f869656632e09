#include "model/make_model.h"

#include <mutex>

#include "base/fail.h"
#include "model/layers/basic_layers.h"

namespace cohort::model {
namespace {

void check_one_source(const ModelOptions& options) {
  std::vector<std::string> given;
  if (!options.preset.empty()) given.emplace_back("preset");
  if (!options.layers.empty()) given.emplace_back("layers");
  if (!options.torchscript.empty()) given.emplace_back("torchscript");
  if (options.make) given.emplace_back("make");
  if (given.empty()) {
    fail(ErrorCode::invalid,
         "the job names no model; give model.preset, model.layers or model.torchscript");
  }
  if (given.size() > 1) {
    fail(ErrorCode::invalid, "the job names its model twice, by model.{} and model.{}; give one",
         given[0], given[1]);
  }
}

/// Torch draws first weights from one generator of the process, and replicas may be made by
/// threads: held from seeding it to the last weight.
std::mutex random_numbers;

std::unique_ptr<Model> make_own(const ModelOptions& options, std::uint64_t seed) {
  const std::lock_guard lock(random_numbers);
  torch::manual_seed(seed);
  auto model = options.make();
  if (!model) fail(ErrorCode::invalid, "the job's model.make returned no model");
  return model;
}

/// Where a layer's weights are applied anew: the pixels of an image, the positions of a sequence.
double positions(const Shape& output) {
  double count = 1;
  if (output.is_sequence()) count = static_cast<double>(output.sizes[0]);
  if (output.is_image()) count = static_cast<double>(output.sizes[1] * output.sizes[2]);
  return count;
}

/// Tokens are looked up in a table, which multiplies nothing.
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

// The same options, data and seed make the same first weights, in every process of a run: a worker
// that comes later makes the model that all began with, without asking anybody for it.
std::unique_ptr<Model> make_model(const ModelOptions& options, const tensor::DataSpec& spec,
                                  std::uint64_t seed) {
  check_one_source(options);
  if (!options.torchscript.empty()) return load_torchscript(options.torchscript);
  if (options.make) return make_own(options, seed);
  const auto plans = plan_model(options, spec);
  const std::lock_guard lock(random_numbers);
  torch::manual_seed(seed);
  return make_layers(plans);
}

std::vector<LayerPlan> plan_model(const ModelOptions& options, const tensor::DataSpec& spec) {
  return plan_network(options.preset.empty() ? options.layers : preset_layers(options, spec), spec);
}

std::unique_ptr<Model> make_layers(const std::vector<LayerPlan>& plans) {
  return wrap(std::make_shared<LayerSequence>(plans));
}

std::optional<double> multiply_adds(const ModelOptions& options, const tensor::DataSpec& spec) {
  if (options.make || !options.torchscript.empty()) return std::nullopt;
  return work_of(plan_model(options, spec));
}

}  // namespace cohort::model
