#include "train/loop/chief_duty.h"

#include <torch/version.h>

#include <string>

#include "artefact/model_files.h"
#include "base/log.h"
#include "kinds/strategy_table.h"
#include "model/make_model.h"

namespace cohort::training {
namespace {

/// What model.json says of the layers: none where the model is the program's own.
artefact::Architecture architecture_of(const ModelOptions& options, const tensor::DataSpec& spec) {
  artefact::Architecture architecture;
  if (options.make) return architecture;
  if (!options.torchscript.empty()) {
    try {
      architecture.script_crc32c = artefact::seal_of(options.torchscript, Links::follow).crc32c;
      architecture.kind = artefact::Architecture::Kind::torchscript;
    } catch (const Error& error) {  // The weights are worth keeping without it.
      log_warn("model.json does not say which TorchScript file was trained: {}", error.what());
    }
    return architecture;
  }
  architecture.kind = artefact::Architecture::Kind::layers;
  architecture.preset = options.preset;
  architecture.layers = model::plan_model(options, spec);
  return architecture;
}

artefact::Artefact artefact_of(const TrainedBy& trained_by) {
  const auto& [job, data, step, workers] = trained_by;
  artefact::Artefact artefact;
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
  return artefact::save_model_files(
      run_dir, model, artefact_of(trained_by),
      {{"step", std::to_string(trained_by.step)}, {"job", trained_by.job.name}});
}

// A worker has this duty for as long as it is rank 0 of a group. The log and the checkpoints are
// the worker's own and outlive the group: a chief that stays chief goes on with them, and one that
// is not any more lets go of both, so that the new chief finds the files free.
ChiefDuty::ChiefDuty(const Context& context, std::int64_t step)
    : context_(context),
      on_(context.view.rank_of(context.life.worker) == 0 && !context.life.run.run_dir.empty()) {
  if (on_) {
    take_over(step);
    return;
  }
  context_.life.log.reset();
  if (context_.life.checkpoints) context_.life.checkpoints->hand_over();
}

// Where steps are handed out they are not done in order: none of those logged is taken back, and
// the workers still have what the last chief did not log.
std::int64_t ChiefDuty::logs_after(std::int64_t step) const {
  const WorkerRun& run = context_.life.run;
  const std::int64_t logged = run.control.logged_step();
  return kinds::way_of(run.job.strategy).traits.hands_out_work && logged >= 0 ? logged : step;
}

// A log that this worker has open, from when it was chief before, may have been cut and written by
// others since: it is opened anew where they have logged more than this group goes on after.
void ChiefDuty::take_over(std::int64_t step) {
  WorkerLife& life = context_.life;
  launch::ControlBlock& control = life.run.control;
  const std::int64_t after = logs_after(step);
  if (control.logged_step() > after) life.log.reset();
  if (!life.log) {
    const bool goes_on = context_.view.generation > 1 || step > 0;
    life.log.emplace(life.run.run_dir, life.run.job.log,
                     goes_on ? std::optional(after) : std::nullopt);
  }
  control.set_logged_step(after);
  if (!life.checkpoints) life.checkpoints.emplace(life.run.run_dir, life.run.job);
  life.checkpoints->take_over();
}

bool ChiefDuty::save_model_file(std::int64_t steps) {
  const WorkerRun& run = context_.life.run;
  return on_ &&
         save_model(run.run_dir, context_.model, {run.job, run.data, steps, context_.view.world()});
}

void ChiefDuty::save_last_model(std::int64_t steps) {
  if (!on_) return;
  context_.life.card.state.store(launch::TaskState::saving);
  const Working working(context_.life.card.activity, BusyWith::saving);
  save_model_file(steps);
}

}  // namespace cohort::training
