#include "train/loop/save_model.h"

#include <torch/version.h>

#include <string>

#include "artefact/model_files.h"
#include "base/log.h"
#include "model/make_model.h"

namespace cohort {
namespace {

Architecture architecture_of(const ModelOptions& options, const DataSpec& spec) {
  Architecture architecture;
  if (options.make) return architecture;
  if (!options.torchscript.empty()) {
    try {
      architecture.script_crc32c = seal_of(options.torchscript, Links::follow).crc32c;
      architecture.kind = Architecture::Kind::torchscript;
    } catch (const Error& error) {  // The weights are worth keeping without it.
      log_warn("model.json does not say which TorchScript file was trained: {}", error.what());
    }
    return architecture;
  }
  architecture.kind = Architecture::Kind::layers;
  architecture.preset = options.preset;
  architecture.layers = plan_model(options, spec);
  return architecture;
}

Artefact artefact_of(const TrainedBy& trained_by) {
  const auto& [job, data, step, workers] = trained_by;
  Artefact artefact;
  artefact.job = job.name;
  artefact.step = step;
  artefact.workers = workers;
  artefact.data_kind = job.data.own_train ? "own" : job.data.kind;
  artefact.train_samples = data.train->size();
  artefact.validation_samples = data.validation->size();
  artefact.loss = job.train.own_loss ? "own" : job.train.loss;
  artefact.spec = data.spec;
  artefact.preprocessing = data.preprocessing;
  artefact.architecture = architecture_of(job.model, data.spec);
  artefact.versions = {{"cohort", COHORT_VERSION}, {"libtorch", TORCH_VERSION}};
  return artefact;
}

}  // namespace

bool save_model(const std::filesystem::path& run_dir, Model& model, const TrainedBy& trained_by) {
  return save_model_files(
      run_dir, model, artefact_of(trained_by),
      {{"step", std::to_string(trained_by.step)}, {"job", trained_by.job.name}});
}

}  // namespace cohort
