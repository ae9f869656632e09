#pragma once

#include <fstream>
#include <string>

#include "artefact/model_files.h"
#include "base/files.h"
#include "data/datasets.h"
#include "data/load_data.h"
#include "model/make_model.h"

namespace cohort::artefact {

/// A model that was never trained, saved as a run saves it, and the data it was made for.
struct SavedModel {
  explicit SavedModel(const DataOptions& options, const ModelOptions& model_options)
      : data(data::load_data(options, 1)), model(model::make_model(model_options, data.spec, 1)) {
    Artefact artefact;
    artefact.job = "test";
    artefact.data_kind = options.kind;
    artefact.train_samples = data.train->size();
    artefact.validation_samples = data.validation->size();
    artefact.loss = data.spec.classes ? "cross-entropy" : "mean-squared-error";
    artefact.spec = data.spec;
    artefact.preprocessing = data.preprocessing;
    artefact.architecture.kind = Architecture::Kind::layers;
    artefact.architecture.layers = model::plan_model(model_options, data.spec);
    model->train(false);
    save_model_files(folder.path(), *model, artefact, {});
  }

  std::string dir() const { return folder.path().string(); }
  std::string text() const { return read_file(folder.path() / kArtefactFile); }
  void write_text(const std::string& text) const {
    std::ofstream(folder.path() / kArtefactFile, std::ios::binary) << text;
  }

  const TemporaryFolder folder;
  data::LoadedData data;
  std::unique_ptr<Model> model;
};

inline std::string write_test_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

/// Two numbers with means and deviations of their own, and three classes by name.
inline DataOptions test_table(const TemporaryFolder& folder) {
  std::string content = "weight,height,kind\n";
  for (int i = 0; i < 30; ++i) {
    content += std::to_string(1000 + 7 * i) + "," + std::to_string(0.001 * i * i) + "," +
               (i % 3 == 0   ? "oak"
                : i % 3 == 1 ? "\xfc"
                               "lme"
                             : "pine") +
               "\n";
  }
  DataOptions options;
  options.kind = "csv";
  options.path = write_test_file(folder.path() / "trees.csv", content);
  return options;
}

inline ModelOptions test_layers() {
  ModelOptions options;
  options.layers = {{.type = "linear", .out = 5}, {.type = "tanh"}, {.type = "linear"}};
  return options;
}

}  // namespace cohort::artefact
