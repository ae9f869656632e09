#include "score/score_run.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace cohort::score {
namespace {

/// What is not UTF-8 cannot stand in JSON. It is named by its bytes, so that no two names of
/// classes become the same.
std::string json_name(const std::string& name) {
  const nlohmann::ordered_json json = text_json(name);
  if (json.is_string()) return json.dump();
  std::string bytes;
  for (const char c : name) bytes += fmt::format(" 0x{:02x}", static_cast<unsigned char>(c));
  return fmt::format("\"{}{}\"", name.size() == 1 ? "byte" : "bytes", bytes);
}

/// JSON has no way to write what is not a finite number.
std::string json_number(float value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

/// The names of the columns; a second value to predict is prediction_2.
std::string header_of(const std::vector<std::string>& class_names, std::int64_t outputs) {
  std::string text = "prediction";
  for (const std::string& name : class_names) {
    text += ',';
    text += csv_field(fmt::format("score:{}", name));
  }
  if (class_names.empty()) {
    for (std::int64_t i = 2; i <= outputs; ++i) text += fmt::format(",prediction_{}", i);
  }
  text += '\n';
  return text;
}

}  // namespace

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos && text.find_first_of(" \t") != 0 &&
      !text.ends_with(' ') && !text.ends_with('\t')) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

PredictionWriter::PredictionWriter(PredictionFormat format, std::vector<std::string> class_names,
                                   std::int64_t outputs, Sink sink)
    : format_(format), names_(std::move(class_names)), sink_(std::move(sink)) {
  if (format_ == PredictionFormat::csv) sink_(header_of(names_, outputs));
  for (std::string& name : names_) {
    name = format_ == PredictionFormat::csv ? csv_field(name) : json_name(name);
  }
}

// Names were made ready for the format once, in the constructor; here only numbers are formatted.
void PredictionWriter::write(const std::vector<Prediction>& predictions) {
  text_.clear();
  for (const Prediction& prediction : predictions) {
    format_ == PredictionFormat::csv ? write_csv(prediction) : write_json(prediction);
  }
  sink_(text_);
}

void PredictionWriter::write_csv(const Prediction& prediction) {
  const auto out = std::back_inserter(text_);
  if (names_.empty()) {
    fmt::format_to(out, "{}\n", fmt::join(prediction.values, ","));
    return;
  }
  fmt::format_to(out, "{},{}\n", names_[static_cast<std::size_t>(prediction.class_id)],
                 fmt::join(prediction.scores, ","));
}

void PredictionWriter::write_json(const Prediction& prediction) {
  const auto out = std::back_inserter(text_);
  if (names_.empty()) {
    std::vector<std::string> values;
    for (const float value : prediction.values) values.push_back(json_number(value));
    const bool one = values.size() == 1;
    fmt::format_to(out, "{{\"prediction\": {}{}{}}}\n", one ? "" : "[", fmt::join(values, ", "),
                   one ? "" : "]");
    return;
  }
  fmt::format_to(out, "{{\"prediction\": {}, \"scores\": {{",
                 names_[static_cast<std::size_t>(prediction.class_id)]);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    fmt::format_to(out, "{}{}: {}", i == 0 ? "" : ", ", names_[i],
                   json_number(prediction.scores[i]));
  }
  text_ += "}}\n";
}

}  // namespace cohort::score
