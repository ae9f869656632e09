#include "artefact/artefact.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/fail.h"
#include "base/integers.h"
#include "base/json.h"
#include "data/preprocessing/preprocessing.h"
#include "model/architecture.h"

namespace cohort::artefact {
namespace {

using Json = nlohmann::ordered_json;

// The version is raised only where an older reader would go wrong; new fields do not raise it.
constexpr const char* kFormat = "cohort-model";
constexpr std::int64_t kVersion = 1;
// Limits of what a file may claim, far above anything real.
constexpr std::int64_t kMostCount = std::int64_t{1} << 60;
constexpr std::int64_t kWidest = 1 << 24;  // As in a job file.
constexpr std::int64_t kMostInputs = std::int64_t{1} << 40;

// ---- writing ----

/// Of the spec, and of the samples it was taken from.
Json spec_json(const Artefact& artefact) {
  const tensor::DataSpec& spec = artefact.spec;
  Json json = {{"kind", artefact.data_kind},
               {"train_samples", artefact.train_samples},
               {"validation_samples", artefact.validation_samples},
               {"input_shape", spec.input_shape},
               {"tokens", spec.tokens},
               {"outputs", spec.outputs}};
  if (spec.tokens) json["vocabulary"] = spec.vocabulary;
  return json;
}

/// The kind, and what a reader needs of it: all layers, or which script it must be.
Json architecture_json(const Architecture& architecture) {
  switch (architecture.kind) {
    case Architecture::Kind::layers: {
      Json json = {{"kind", "layers"}};
      if (!architecture.preset.empty()) json["preset"] = architecture.preset;
      json["layers"] = model::to_json(architecture.layers);
      return json;
    }
    case Architecture::Kind::torchscript:
      return {{"kind", "torchscript"},
              {"crc32c", fmt::format("{:08x}", architecture.script_crc32c)}};
    case Architecture::Kind::own:
      break;
  }
  return {{"kind", "own"}};
}

// ---- reading ----

/// Checksums are written as eight hexadecimal digits.
std::uint32_t read_crc32c(const JsonFields& fields) {
  const std::string text = fields.text("crc32c");
  const bool is_hex = text.size() == 8 && text.find_first_not_of("0123456789abcdef") == text.npos;
  if (!is_hex) {
    fields.wrong("crc32c", fmt::format("is \"{}\", not eight hexadecimal digits", excerpt(text)));
  }
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
}

/// `classes` is the task, which stands elsewhere in the file.
tensor::DataSpec read_spec(const JsonFields& fields, bool classes) {
  tensor::DataSpec spec;
  spec.input_shape = fields.integers("input_shape", 1, kWidest, 8);
  const auto inputs = checked_product(std::span<const std::int64_t>(spec.input_shape));
  if (!inputs || *inputs > kMostInputs) {
    fields.wrong("input_shape", "is larger than any sample can be");
  }
  spec.tokens = fields.flag("tokens");
  spec.classes = classes;
  spec.outputs = fields.integer("outputs", 1, kWidest);
  if (spec.tokens) spec.vocabulary = fields.integer("vocabulary", 1, kWidest);
  if (spec.tokens && spec.input_shape.empty()) fields.wrong("input_shape", "is empty");
  return spec;
}

/// The layers are planned for `spec`, so what comes back fits the data.
Architecture read_architecture_of(const JsonFields& fields, const tensor::DataSpec& spec) {
  Architecture architecture;
  const std::string kind = fields.text("kind");
  if (kind == "layers") {
    architecture.kind = Architecture::Kind::layers;
    architecture.layers = model::read_architecture(fields, "layers", spec);
    if (fields.has("preset")) architecture.preset = fields.text("preset");
  } else if (kind == "torchscript") {
    architecture.kind = Architecture::Kind::torchscript;
    architecture.script_crc32c = read_crc32c(fields);
  } else if (kind != "own") {
    fields.wrong("kind",
                 fmt::format("is \"{}\", none of layers, torchscript and own", excerpt(kind)));
  }
  return architecture;
}

/// Whether the task is to tell classes.
bool read_task(const JsonFields& fields) {
  const std::string task = fields.text("task");
  if (task != "classes" && task != "values") {
    fields.wrong("task", fmt::format("is \"{}\", neither classes nor values", excerpt(task)));
  }
  return task == "classes";
}

/// First of all: a later version may have changed what anything else means.
void check_format(const JsonFields& fields, const std::string& file) {
  if (!fields.has("format") || fields.text("format") != kFormat) {
    fail(ErrorCode::corrupt, "{} is not a model that Cohort wrote: its format is not \"{}\"", file,
         kFormat);
  }
  const std::int64_t version = fields.integer("version", 1, kMostCount);
  if (version > kVersion) {
    fail(ErrorCode::unsupported,
         "{} has version {} of its format, and this Cohort knows up to {}; use a newer one", file,
         version, kVersion);
  }
}

/// Scoring makes the loss anew by this name; of a program's own it has only the word.
void check_loss(const JsonFields& fields, const std::string& loss) {
  if (loss == "cross-entropy" || loss == "mean-squared-error" || loss == "own") return;
  fields.wrong("loss", fmt::format("is \"{}\", which is no loss", excerpt(loss)));
}

}  // namespace

std::string to_json(const Artefact& artefact) {
  const Json json = {
      {"format", kFormat},
      {"version", kVersion},
      {"versions", artefact.versions},
      {"trained", {{"job", artefact.job}, {"step", artefact.step}, {"workers", artefact.workers}}},
      {"task", artefact.spec.classes ? "classes" : "values"},
      {"loss", artefact.loss},
      {"data", spec_json(artefact)},
      {"preprocessing", data::to_json(artefact.preprocessing)},
      {"architecture", architecture_json(artefact.architecture)},
      {"weights",
       {{"bytes", artefact.weights.bytes},
        {"crc32c", fmt::format("{:08x}", artefact.weights.crc32c)}}}};
  return json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

// In this order because later parts are checked against earlier ones: the spec needs the task,
// preprocessing and architecture need the spec.
Artefact parse_artefact(const std::string& text, const std::string& file) {
  const nlohmann::json json = parse_json(text);
  if (!json.is_object()) {
    fail(ErrorCode::corrupt,
         "{} is not a JSON object: it is truncated, nests too deep or is no JSON", file);
  }
  const JsonFields fields(json, file);
  check_format(fields, file);
  Artefact artefact;
  const JsonFields trained = fields.object("trained");
  artefact.job = trained.text("job");
  artefact.step = trained.integer("step", 0, kMostCount);
  artefact.workers = trained.integer("workers", 1, 1 << 20);
  const JsonFields data = fields.object("data");
  artefact.data_kind = data.text("kind");
  artefact.train_samples = data.integer("train_samples", 1, kMostCount);
  artefact.validation_samples = data.integer("validation_samples", 0, kMostCount);
  artefact.loss = fields.text("loss");
  check_loss(fields, artefact.loss);
  artefact.spec = read_spec(data, read_task(fields));
  artefact.preprocessing = data::read_preprocessing(fields.object("preprocessing"), artefact.spec);
  artefact.architecture = read_architecture_of(fields.object("architecture"), artefact.spec);
  const JsonFields weights = fields.object("weights");
  artefact.weights = {static_cast<std::uint64_t>(weights.integer("bytes", 8, kMostCount)),
                      read_crc32c(weights)};
  return artefact;
}

}  // namespace cohort::artefact
