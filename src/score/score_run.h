#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "artefact/artefact.h"
#include "score/prediction_writer.h"
#include "score/row_source.h"

namespace cohort {

/// A model of a run, loaded, and all that is known of it.
struct RunModel {
  Artefact artefact;
  std::unique_ptr<Model> model;
};

/// `script`: the TorchScript file, where the model is one; otherwise empty. Throws as load_model
/// and load_torchscript_model do.
RunModel load_run_model(const std::filesystem::path& run_dir, const std::string& script);

/// How well a model did.
struct Score {
  std::int64_t samples = 0;
  std::optional<double>
      loss;  ///< Nothing where it is a program's own, or no row says what is right.
  std::optional<double> accuracy;  ///< Only of classes.
};

/// Scores all rows, and writes what the model says of them where there is a writer.
Score score_rows(RunModel& run, RowSource& rows, PredictionWriter* writer);

/// Scores the validation samples of the run's own job, which are loaded as training loaded them.
/// They go through the model in the chunks in which the workers of the run looked at them, by the
/// same code: of a run that has completed, the accuracy is that of its summary, to the last bit.
/// Throws Error(invalid) for a program's own data, and where the job's files are not those that the
/// model was trained on any more.
Score score_validation(RunModel& run, const Job& job, PredictionWriter* writer);

}  // namespace cohort
