#pragma once

#include <cohort/job.h>
#include <cohort/loaded_model.h>
#include <cohort/model.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artefact/artefact.h"
#include "score/row_source.h"

namespace cohort::score {

/// What `cohort score` does with a model of a run. Two sources of samples, and one Score of each:
///
///   --input FILE    open_rows() ── score_rows()       rows of a file, 256 at a time
///   without         score_validation()                the run's own validation samples
///
/// Either may write a prediction for every row on the way (PredictionWriter). One thread; the model
/// is not in training mode, and no gradients are made.

enum class PredictionFormat { csv, json };

/// Predictions as text, a line for each: CSV with a header (`prediction`, and a column `score:NAME`
/// for every class), or JSON, an object a line ({"prediction": …, "scores": {…}}), where a name
/// that is not UTF-8 is written by its bytes: "byte 0xc3".
///
///   csv     prediction,score:oak,score:pine       json    {"prediction": "oak", "scores":
///           oak,0.75,0.25                                  {"oak": 0.75, "pine": 0.25}}
///
/// Numbers are the shortest that read back as the same float. Nothing is kept but the names: the
/// sink gets the text of each write() at once. For one thread; what the sink throws is passed on.
class PredictionWriter {
 public:
  /// Takes the text, piece by piece.
  using Sink = std::function<void(std::string_view)>;

  /// Writes the header of a CSV. `class_names` is empty where `outputs` values are predicted.
  PredictionWriter(PredictionFormat format, std::vector<std::string> class_names,
                   std::int64_t outputs, Sink sink);

  /// A line for each, in their order.
  void write(const std::vector<Prediction>& predictions);

 private:
  void write_csv(const Prediction& prediction);
  void write_json(const Prediction& prediction);

  PredictionFormat format_;
  std::vector<std::string> names_;  ///< Of classes, as the format writes them.
  Sink sink_;
  std::string text_;  ///< Of one write(); kept for its memory.
};

/// A field of a CSV file: in quotes where a reader would take it for more than one field, or would
/// drop spaces around it.
std::string csv_field(const std::string& text);

/// A model of a run, loaded, and all that is known of it.
struct RunModel {
  artefact::Artefact artefact;
  std::unique_ptr<Model> model;
};

/// `script`: the TorchScript file, where the model is one; otherwise empty. Throws as load_model
/// and load_torchscript_model do.
RunModel load_run_model(const std::filesystem::path& run_dir, const std::string& script);

/// How well a model did.
struct Score {
  std::int64_t samples = 0;
  /// Nothing where the loss is a program's own, or no row says what is right.
  std::optional<double> loss;
  /// The share of right predictions; only of classes, and likewise.
  std::optional<double> accuracy;
};

/// Scores all rows, and writes what the model says of them where there is a writer. Throws what the
/// source throws, and Error(invalid) naming the row whose outputs are not finite numbers.
Score score_rows(RunModel& run, RowSource& rows, PredictionWriter* writer);

/// Scores the validation samples of the run's own job, which are loaded as training loaded them.
/// They go through the model in the chunks in which the workers of the run looked at them, by the
/// same code: of a run that has completed, the accuracy is that of its summary, to the last bit.
/// Throws Error(invalid) for a program's own data, and where the job's files are not those that the
/// model was trained on any more.
Score score_validation(RunModel& run, const Job& job, PredictionWriter* writer);

}  // namespace cohort::score
