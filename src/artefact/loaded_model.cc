// The public door of this room: a model in a folder, as an object that takes raw rows and gives
// named predictions. Everything it does is in artefact, model_files and conversion; here they are
// put together behind include/cohort/loaded_model.h, which shows none of them.
#include <cohort/loaded_model.h>

#include <algorithm>
#include <utility>

#include "artefact/conversion.h"
#include "artefact/model_files.h"
#include "base/fail.h"

namespace cohort {

// What a LoadedModel is; names are kept beside the artefact, since a caller may ask for them by the
// row.
struct LoadedModel::State {
  State(artefact::Artefact its_artefact, std::unique_ptr<Model> its_model)
      : artefact(std::move(its_artefact)),
        model(std::move(its_model)),
        class_names(artefact.preprocessing.class_names()) {
    if (const auto* table = std::get_if<data::TableInput>(&artefact.preprocessing.input)) {
      feature_names = table->features;
    }
  }

  artefact::Artefact artefact;
  std::unique_ptr<Model> model;
  std::vector<std::string> class_names;
  std::vector<std::string> feature_names;
};

namespace {

/// The model computes with so many rows at a time, however many there are: memory stays small.
constexpr std::int64_t kRowsAtOnce = 256;

/// Piece by piece through the model, in the order of the rows.
std::vector<Prediction> predict_input(LoadedModel& model, const torch::Tensor& input) {
  std::vector<Prediction> all;
  for (std::int64_t begin = 0; begin < input.size(0); begin += kRowsAtOnce) {
    const std::int64_t rows = std::min(kRowsAtOnce, input.size(0) - begin);
    for (Prediction& prediction : model.describe(model.forward(input.narrow(0, begin, rows)))) {
      all.push_back(std::move(prediction));
    }
  }
  return all;
}

}  // namespace

LoadedModel::LoadedModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoadedModel::~LoadedModel() = default;
LoadedModel::LoadedModel(LoadedModel&&) noexcept = default;
LoadedModel& LoadedModel::operator=(LoadedModel&&) noexcept = default;

const std::vector<std::string>& LoadedModel::class_names() const {
  return state_->class_names;
}
const std::vector<std::string>& LoadedModel::feature_names() const {
  return state_->feature_names;
}
const std::vector<std::int64_t>& LoadedModel::input_shape() const {
  return state_->artefact.spec.input_shape;
}
bool LoadedModel::predicts_classes() const {
  return state_->artefact.spec.classes;
}

torch::Tensor LoadedModel::preprocess(const std::vector<std::vector<std::string>>& rows) const {
  return artefact::input_of(state_->artefact.preprocessing, state_->artefact.spec, rows);
}
torch::Tensor LoadedModel::preprocess(const std::vector<std::vector<double>>& rows) const {
  return artefact::input_of(state_->artefact.preprocessing, state_->artefact.spec, rows);
}

torch::Tensor LoadedModel::forward(const torch::Tensor& input) {
  const torch::NoGradGuard no_grad;
  return state_->model->forward(input);
}

std::vector<Prediction> LoadedModel::describe(const torch::Tensor& output) const {
  return artefact::describe_output(output, state_->artefact.spec.outputs, state_->class_names);
}

std::vector<Prediction> LoadedModel::predict_batch(
    const std::vector<std::vector<std::string>>& rows) {
  return predict_input(*this, preprocess(rows));
}
std::vector<Prediction> LoadedModel::predict_batch(const std::vector<std::vector<double>>& rows) {
  return predict_input(*this, preprocess(rows));
}
Prediction LoadedModel::predict(const std::vector<std::string>& fields) {
  return std::move(predict_batch(std::vector<std::vector<std::string>>{fields}).front());
}
Prediction LoadedModel::predict(const std::vector<double>& numbers) {
  return std::move(predict_batch(std::vector<std::vector<double>>{numbers}).front());
}

// Three ways to a model: its layers are in the artefact; a program makes it; a TorchScript file has
// it.

LoadedModel load_model(const std::string& dir) {
  artefact::Artefact artefact = artefact::read_artefact(dir);
  auto model = artefact::make_trained_model(dir, artefact);
  return LoadedModel(std::make_unique<LoadedModel::State>(std::move(artefact), std::move(model)));
}

LoadedModel load_model(const std::string& dir,
                       const std::function<std::unique_ptr<Model>()>& make) {
  artefact::Artefact artefact = artefact::read_artefact(dir);
  auto model = make();
  if (!model) fail(ErrorCode::invalid, "the function that makes the model returned none");
  artefact::load_weights(dir, artefact, *model);
  return LoadedModel(std::make_unique<LoadedModel::State>(std::move(artefact), std::move(model)));
}

// The file must be the one that was trained; its code runs.
LoadedModel load_torchscript_model(const std::string& dir, const std::string& file) {
  artefact::Artefact artefact = artefact::read_artefact(dir);
  auto model = artefact::make_script_model(dir, artefact, file);
  return LoadedModel(std::make_unique<LoadedModel::State>(std::move(artefact), std::move(model)));
}

}  // namespace cohort
