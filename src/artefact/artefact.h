#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/preprocessing/preprocessing.h"
#include "model/layers/layer_plan.h"
#include "tensor/data_spec.h"

namespace cohort::artefact {

/// What a network is, as far as a file can say: its layers, or only that it is something else.
/// Whoever loads a TorchScript file or a program's own module has to bring it: a file's name in an
/// artefact is never opened, since loading one runs the code in it.
struct Architecture {
  enum class Kind { layers, torchscript, own };

  Kind kind = Kind::own;
  std::string preset;  ///< The layers' name, where they had one; nothing depends on it.
  std::vector<model::LayerPlan> layers;  ///< Of Kind::layers.
  std::uint32_t script_crc32c = 0;       ///< Of Kind::torchscript: of the file that was trained.
};

/// Which weights belong to an artefact: those of a file with this size and checksum.
struct WeightsSeal {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;

  bool operator==(const WeightsSeal&) const = default;
};

/// All of a trained model but its weights: `model.json`, beside `model.safetensors`. docs/model.md
/// describes the file. What the data loader learned is in `preprocessing`, so that the model takes
/// raw rows and gives named classes wherever it is.
///
///   model.json          Artefact: spec, preprocessing, architecture, and the seal of
///   model.safetensors   the weights, by name
///
/// A plain value. Only parse_artefact() checks that its parts fit together; who makes one (a run
/// that saves its model) fills in what it trained.
struct Artefact {
  std::string job;           ///< Its name.
  std::int64_t step = 0;     ///< Steps done.
  std::int64_t workers = 1;  ///< That shared the validation samples at the end.
  std::string data_kind;     ///< csv, …; "own" for a program's own.
  std::int64_t train_samples = 0;
  std::int64_t validation_samples = 0;
  std::string loss;  ///< cross-entropy, mean-squared-error, own.
  tensor::DataSpec spec;
  data::Preprocessing preprocessing;
  Architecture architecture;
  std::map<std::string, std::string> versions;  ///< Of what wrote it.
  WeightsSeal weights;
};

inline constexpr const char* kArtefactFile = "model.json";
inline constexpr const char* kWeightsFile = "model.safetensors";

/// model.json's content.
std::string to_json(const Artefact& artefact);

/// The artefact in such a text; `file` is what errors call it. The text may be anybody's: every
/// field has limits, sizes that are in it twice must agree, the layers are planned anew, and
/// nothing is allocated by a number in it before that number was compared with what else is there.
/// Fields that are not known are ignored. Throws Error(corrupt) with one sentence, or
/// Error(unsupported) for the format of a later version.
Artefact parse_artefact(const std::string& text, const std::string& file);

}  // namespace cohort::artefact
