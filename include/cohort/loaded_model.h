#pragma once

#include <cohort/model.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cohort {

/// A raw row, as the training data had them: the fields of a line, or numbers.
using TextRow = std::vector<std::string>;
using NumberRow = std::vector<double>;

/// What a model says of one row.
struct Prediction {
  std::int64_t class_id = -1;   ///< The most likely class; -1 where values are predicted.
  std::string class_name = {};  ///< As training called it; text: the character that comes next.
  std::vector<float> scores;    ///< The probability of every class, in the order of class_names().
  std::vector<float> values;    ///< Where values are predicted.
};

/// A trained model that takes raw rows, as the training data had them, and gives named classes or
/// values. It has what training learned of the data (means and deviations, scaling, vocabulary,
/// classes): rows go the way that training samples went, through the same code. Not in training
/// mode, without gradients. One thread at a time may call it.
///
/// Throws Error(invalid), naming the row (they count from 1) and what is wrong with it, for rows
/// that are not what the model was trained on.
class LoadedModel {
 public:
  ~LoadedModel();
  LoadedModel(LoadedModel&&) noexcept;
  LoadedModel& operator=(LoadedModel&&) noexcept;

  /// Empty where values are predicted.
  const std::vector<std::string>& class_names() const;
  /// The columns of a CSV row, in the order of its fields, without the target; empty for other
  /// data.
  const std::vector<std::string>& feature_names() const;
  /// Of one sample, as forward() takes it.
  const std::vector<std::int64_t>& input_shape() const;
  bool predicts_classes() const;

  /// A row of text fields: of CSV in the order of feature_names(); of LIBSVM one field
  /// "index:value index:value …"; of text one field, as many characters as the model sees.
  Prediction predict(const TextRow& fields);
  /// A row of raw numbers: of CSV and LIBSVM the features, of images the pixels from 0 to 255, of
  /// data that needs no preprocessing the inputs.
  Prediction predict(const NumberRow& numbers);

  std::vector<Prediction> predict_batch(const std::vector<TextRow>& rows);
  std::vector<Prediction> predict_batch(const std::vector<NumberRow>& rows);

  /// The plain path: rows to the model's input, an input to the model's output, an output to
  /// predictions. `input` may be any tensor that training could have given the model.
  torch::Tensor preprocess(const std::vector<TextRow>& rows) const;
  torch::Tensor preprocess(const std::vector<NumberRow>& rows) const;
  torch::Tensor forward(const torch::Tensor& input);
  std::vector<Prediction> describe(const torch::Tensor& output) const;

 private:
  struct State;
  explicit LoadedModel(std::unique_ptr<State> state);
  friend LoadedModel load_model(const std::string& dir);
  friend LoadedModel load_model(const std::string& dir,
                                const std::function<std::unique_ptr<Model>()>& make);
  friend LoadedModel load_torchscript_model(const std::string& dir, const std::string& file);

  std::unique_ptr<State> state_;
};

/// The model that a run left in its folder (`model.json` and `model.safetensors`, which may have
/// been moved elsewhere together); docs/model.md describes both. Throws Error: not_found where
/// there is none, corrupt for files that are broken or do not belong together, invalid for a model
/// that is a program's own module or a TorchScript file, whose code is not in the folder.
LoadedModel load_model(const std::string& dir);

/// The same for a program's own module: `make` gives one, as Job::model.make did, and it gets the
/// trained weights.
LoadedModel load_model(const std::string& dir, const std::function<std::unique_ptr<Model>()>& make);

/// The same for a TorchScript file that was trained: `file` must be that very file, whose code is
/// run. An artefact never says which file to open.
LoadedModel load_torchscript_model(const std::string& dir, const std::string& file);

}  // namespace cohort
