#pragma once

#include <cohort/loaded_model.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::score {

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

}  // namespace cohort::score
