#include "score/score_run.h"

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "artefact/conversion.h"
#include "artefact/model_files.h"
#include "base/fail.h"
#include "data/batch_loader.h"
#include "data/load_data.h"
#include "data/preprocessing/preprocessing.h"
#include "train/loop/validation.h"

namespace cohort::score {
namespace {

/// The loss of the training. A program's own is not known here: 0 stands for it, and the score has
/// no loss then.
training::LossFunction loss_of(const artefact::Artefact& artefact) {
  if (artefact.loss == "own") {
    return [](const torch::Tensor&, const torch::Tensor&) { return torch::zeros({}); };
  }
  TrainOptions options;
  options.loss = artefact.loss;
  return training::make_loss(options);
}

/// A model that stays out of training mode whatever it is told, and whose outputs somebody sees: so
/// the validation code of training runs unchanged, and predictions are written on the way.
class WatchedModel : public Model {
 public:
  WatchedModel(Model& model, std::function<void(const torch::Tensor& output)> look)
      : model_(model), look_(std::move(look)) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    torch::Tensor output = model_.forward(input);
    look_(output);
    return output;
  }
  std::vector<NamedTensor> parameters() override { return model_.parameters(); }
  std::vector<NamedTensor> buffers() override { return model_.buffers(); }
  void train(bool) override {}

 private:
  Model& model_;
  std::function<void(const torch::Tensor&)> look_;
};

/// Does nothing where there is no writer.
std::function<void(const torch::Tensor&)> written_by(PredictionWriter* writer,
                                                     const artefact::Artefact& artefact) {
  return [writer, outputs = artefact.spec.outputs,
          names = artefact.preprocessing.class_names()](const torch::Tensor& output) {
    if (writer != nullptr) writer->write(artefact::describe_output(output, outputs, names));
  };
}

/// Of outputs that are not finite the largest means nothing: an error is better than a wrong class.
/// `before`: rows of the file before these.
void check_numbers(const torch::Tensor& output, std::int64_t before) {
  const torch::Tensor good = at::isfinite(output).reshape({output.size(0), -1}).all(1);
  if (good.all().item<bool>()) return;
  const auto row = good.logical_not().nonzero()[0][0].item<std::int64_t>();
  fail(ErrorCode::invalid,
       "row {} gives outputs that are not finite numbers: its values are too large for the model, "
       "or the model is broken",
       before + row + 1);
}

/// The files may have changed since the training, and MNIST may have come or gone. Sizes and all
/// that loading learned are compared; that is not every value, but means and classes show most
/// changes.
void check_same_data(const artefact::Artefact& artefact, const data::LoadedData& data,
                     const DataOptions& options) {
  const bool same = artefact.train_samples == data.train->size() &&
                    artefact.validation_samples == data.validation->size() &&
                    artefact.spec.input_shape == data.spec.input_shape &&
                    data::to_json(artefact.preprocessing) == data::to_json(data.preprocessing);
  if (same) return;
  fail(
      ErrorCode::invalid,
      "the {} data{} is not what the model was trained on any more: {} and {} samples then, {} and "
      "{} now{}",
      options.kind, options.path.empty() ? "" : " in " + options.path, artefact.train_samples,
      artefact.validation_samples, data.train->size(), data.validation->size(),
      artefact.train_samples == data.train->size() ? ", and other values" : "");
}

}  // namespace

// A script is code, so it is only taken where the caller names it.
RunModel load_run_model(const std::filesystem::path& run_dir, const std::string& script) {
  RunModel run{artefact::read_artefact(run_dir), nullptr};
  run.model = script.empty() ? artefact::make_trained_model(run_dir, run.artefact)
                             : artefact::make_script_model(run_dir, run.artefact, script);
  return run;
}

// A batch's loss is a mean, so it counts by its rows.
Score score_rows(RunModel& run, RowSource& rows, PredictionWriter* writer) {
  const torch::NoGradGuard no_grad;
  const training::LossFunction loss = loss_of(run.artefact);
  Score score;
  const auto write = written_by(writer, run.artefact);
  WatchedModel model(*run.model, [&](const torch::Tensor& output) {
    check_numbers(output, score.samples);
    write(output);
  });
  double loss_sum = 0;
  training::Hits hits;
  bool compared = false;
  while (const auto batch = rows.next()) {
    const torch::Tensor output = model.forward(batch->input);
    const std::int64_t count = batch->input.size(0);
    score.samples += count;
    if (!batch->target.defined()) continue;
    compared = true;
    loss_sum += loss(output, batch->target).item<double>() * static_cast<double>(count);
    if (!run.artefact.spec.classes) continue;
    const training::Hits more = training::count_hits(output, batch->target);
    hits.right += more.right;
    hits.all += more.all;
  }
  if (!compared) return score;
  if (run.artefact.loss != "own") score.loss = loss_sum / static_cast<double>(score.samples);
  if (run.artefact.spec.classes) score.accuracy = hits.right / hits.all;
  return score;
}

// As many parts as the run had workers, each in the chunks of training: sums of floats depend on
// it.
Score score_validation(RunModel& run, const Job& job, PredictionWriter* writer) {
  const artefact::Artefact& artefact = run.artefact;
  if (artefact.data_kind == "own") {
    fail(
        ErrorCode::invalid,
        "the run was trained on a program's own samples, which only that program has; it can score "
        "them by load_model");
  }
  const data::LoadedData data = data::load_data(job.data, job.seed);
  check_same_data(artefact, data, job.data);
  WatchedModel model(*run.model, written_by(writer, artefact));
  const training::LossFunction loss = loss_of(artefact);
  training::ValidationSums totals;
  const auto workers = static_cast<int>(artefact.workers);
  for (int rank = 0; rank < workers; ++rank) {
    data::EvaluationBatches part(data.validation, training::kValidationChunk, rank, workers);
    const training::ValidationSums sums = training::evaluate(model, part, loss);
    totals.loss += sums.loss;
    totals.samples += sums.samples;
    totals.right += sums.right;
    totals.predictions += sums.predictions;
  }
  const training::ValidationResult result = training::result_of(totals);
  Score score{.samples = data.validation->size(), .loss = {}, .accuracy = {}};
  if (artefact.loss != "own") score.loss = result.loss;
  if (artefact.spec.classes) score.accuracy = result.accuracy;
  return score;
}

}  // namespace cohort::score
