#pragma once

#include <cohort/loaded_model.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

enum class PredictionFormat { csv, json };

/// Predictions as text, a line for each: CSV with a header (`prediction`, and a column `score:NAME`
/// for every class), or JSON, an object a line ({"prediction": …, "scores": {…}}), where a name
/// that is not UTF-8 is written by its bytes: "byte 0xc3".
class PredictionWriter {
 public:
  /// Takes the text, piece by piece.
  using Sink = std::function<void(std::string_view)>;

  /// `class_names` is empty where `outputs` values are predicted.
  PredictionWriter(PredictionFormat format, std::vector<std::string> class_names,
                   std::int64_t outputs, Sink sink);

  void write(const std::vector<Prediction>& predictions);

 private:
  void write_csv(const Prediction& prediction);
  void write_json(const Prediction& prediction);

  PredictionFormat format_;
  std::vector<std::string> names_;  ///< Of classes, as the format writes them.
  Sink sink_;
  std::string text_;
};

/// A field of a CSV file: in quotes where it needs them.
std::string csv_field(const std::string& text);

}  // namespace cohort
