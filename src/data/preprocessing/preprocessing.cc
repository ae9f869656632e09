#include "data/preprocessing/preprocessing.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/fail.h"
#include "base/json.h"

namespace cohort::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

// An overload for each kind of input; "kind" names it, and read_preprocessing() tells them by that.
OrderedJson input_json(const PlainInput&) {
  return {{"kind", "plain"}};
}

OrderedJson input_json(const TableInput& table) {
  return {{"kind", "table"},
          {"features", text_json(table.features)},
          {"target", text_json(table.target)},
          {"target_column", table.target_column},
          {"header", table.header},
          {"mean", table.mean},
          {"factor", table.factor}};
}

OrderedJson input_json(const SparseInput& sparse) {
  return {{"kind", "sparse"}, {"width", sparse.width}};
}

OrderedJson input_json(const ImageInput& image) {
  return {{"kind", "image"},
          {"shape", image.shape},
          {"mean", image.mean},
          {"deviation", image.deviation}};
}

OrderedJson input_json(const TextInput& text) {
  return {{"kind", "text"},
          {"context", text.context},
          {"bytes", text.vocabulary.bytes()},
          {"unknown", text.vocabulary.unknown()}};
}

/// The unknown class is a flag, not a name: its name is the program's business.
OrderedJson targets_json(const Targets& targets) {
  if (!targets.classes()) return {{"values", targets.outputs()}};
  if (targets.counted()) return {{"counted", targets.outputs()}};
  std::vector<std::string> names = targets.names();
  if (targets.unknown()) names.pop_back();
  return {
      {"names", text_json(names)}, {"numeric", targets.numeric()}, {"unknown", targets.unknown()}};
}

// A reader for each kind. Sizes that the data names too must be the same in both places.

using Sizes = std::vector<std::int64_t>;

TableInput read_table_input(const JsonFields& fields, const tensor::DataSpec& spec) {
  TableInput table;
  table.features = fields.texts("features");
  table.target = fields.any_text("target");
  const auto width = static_cast<std::int64_t>(table.width());
  table.target_column = static_cast<std::size_t>(fields.integer("target_column", 0, width));
  table.header = fields.flag("header");
  table.mean = fields.numbers("mean");
  table.factor = fields.numbers("factor");
  if (spec.input_shape != Sizes{width}) {
    fields.wrong("features",
                 fmt::format("has {} names, which are not the inputs of the data", width));
  }
  for (const char* key : {"mean", "factor"}) {
    const auto& list = key[0] == 'm' ? table.mean : table.factor;
    if (list.size() == table.width()) continue;
    fields.wrong(key, fmt::format("has {} numbers for {} features", list.size(), width));
  }
  return table;
}

SparseInput read_sparse_input(const JsonFields& fields, const tensor::DataSpec& spec) {
  const SparseInput sparse{fields.integer("width", 1, 1 << 24)};
  if (spec.input_shape != Sizes{sparse.width}) fields.wrong("width", "is not that of the data");
  return sparse;
}

ImageInput read_image_input(const JsonFields& fields, const tensor::DataSpec& spec) {
  ImageInput image;
  image.shape = fields.integers("shape", 1, 1 << 24, 3);
  image.mean = fields.number("mean");
  image.deviation = fields.number("deviation");
  if (spec.input_shape != image.shape) fields.wrong("shape", "is not that of the data");
  if (!(image.deviation > 0)) fields.wrong("deviation", "is not above 0");
  return image;
}

TextInput read_text_input(const JsonFields& fields, const tensor::DataSpec& spec) {
  const Sizes bytes = fields.integers("bytes", 0, 255, 256);
  if (!std::ranges::is_sorted(bytes, std::ranges::less_equal())) {
    fields.wrong("bytes", "does not ascend");
  }
  const TextInput text{
      .vocabulary =
          Vocabulary(std::vector<std::uint8_t>(bytes.begin(), bytes.end()), fields.flag("unknown")),
      .context = fields.integer("context", 1, 1 << 24)};
  if (!spec.tokens || spec.vocabulary != text.vocabulary.size() ||
      spec.outputs != text.vocabulary.size()) {
    fields.wrong("bytes", "has not the number of characters that the data has");
  }
  if (spec.input_shape != Sizes{text.context}) fields.wrong("context", "is not that of the data");
  return text;
}

/// Errors of Targets itself (a class twice, one that is no number) become errors of the file.
Targets read_targets(const JsonFields& fields, const tensor::DataSpec& spec) {
  if (!spec.classes) {
    const Targets targets = Targets::values(fields.integer("values", 1, 1 << 24));
    if (targets.outputs() != spec.outputs) fields.wrong("values", "is not that of the data");
    return targets;
  }
  if (fields.has("counted")) {
    if (fields.integer("counted", 1, 1 << 24) != spec.outputs) {
      fields.wrong("counted", "is not the number of classes that the data has");
    }
    return Targets::counted(spec.outputs);
  }
  try {
    Targets targets =
        Targets::named(fields.texts("names"), fields.flag("numeric"), fields.flag("unknown"));
    if (targets.outputs() == spec.outputs) return targets;
    fields.wrong("names", fmt::format("has {} classes but the data has {}", targets.outputs(),
                                      spec.outputs));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid) throw;
    fields.wrong("names", fmt::format("cannot be: {}", error.what()));
  }
}

}  // namespace

// Both directions of what model.json has of the preprocessing. What is read may have been written
// by anybody: every number has its bounds, and whatever the file says twice (here, and in the shape
// of the data) must be the same in both places, since scoring relies on it without looking again.
OrderedJson to_json(const Preprocessing& preprocessing) {
  OrderedJson json =
      std::visit([](const auto& input) { return input_json(input); }, preprocessing.input);
  if (!std::holds_alternative<TextInput>(preprocessing.input)) {
    json["targets"] = targets_json(preprocessing.targets);
  }
  return json;
}

Preprocessing read_preprocessing(const JsonFields& fields, const tensor::DataSpec& spec) {
  const std::string kind = fields.text("kind");
  if (kind == "text") {
    return {read_text_input(fields, spec), Targets::named({}, false, false)};
  }
  const Targets targets = read_targets(fields.object("targets"), spec);
  if (kind == "plain") return {PlainInput(), targets};
  if (kind == "table") return {read_table_input(fields, spec), targets};
  if (kind == "sparse") return {read_sparse_input(fields, spec), targets};
  if (kind == "image") return {read_image_input(fields, spec), targets};
  fields.wrong("kind", "is none of plain, table, sparse, image and text");
}

}  // namespace cohort::data
