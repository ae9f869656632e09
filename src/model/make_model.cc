#include "model/make_model.h"

#include <mutex>

#include "base/fail.h"
#include "model/layers/layer_sequence.h"
#include "model/presets.h"
#include "model/torchscript_model.h"

namespace cohort {
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

// Torch draws first weights from one generator of the process; replicas may be made by threads.
std::mutex random_numbers;

std::unique_ptr<Model> make_own(const ModelOptions& options, std::uint64_t seed) {
  const std::lock_guard lock(random_numbers);
  torch::manual_seed(seed);
  auto model = options.make();
  if (!model) fail(ErrorCode::invalid, "the job's model.make returned no model");
  return model;
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelOptions& options, const DataSpec& spec,
                                  std::uint64_t seed) {
  check_one_source(options);
  if (!options.torchscript.empty()) return load_torchscript(options.torchscript);
  if (options.make) return make_own(options, seed);
  const auto plans = plan_model(options, spec);
  const std::lock_guard lock(random_numbers);
  torch::manual_seed(seed);
  return make_layers(plans);
}

std::vector<LayerPlan> plan_model(const ModelOptions& options, const DataSpec& spec) {
  return plan_network(options.preset.empty() ? options.layers : preset_layers(options, spec), spec);
}

std::unique_ptr<Model> make_layers(const std::vector<LayerPlan>& plans) {
  return wrap(std::make_shared<LayerSequence>(plans));
}

}  // namespace cohort
