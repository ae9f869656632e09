#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/raw_text.h"
#include "formats/sparse_row.h"

namespace cohort::data {

/// How a raw row becomes a model's input, for each kind of data: what the loader learned, as a
/// value, and the functions that apply it. The loaders of training data and everybody who scores
/// call the same functions, so both make the same floats of the same text.
///
///   kind     raw row                       input                            learned
///   table    fields of a CSV record        numbers, mean 0 deviation 1      columns, means,
///   factors sparse   "label index:value …"         `width` floats, mostly 0         the width
///   image    bytes                         floats around 0                  –
///   text     characters                    their ids                        the vocabulary
///
/// Values without hidden state: const functions may be called on any thread.

/// How a row of a table becomes a model's input: which columns, in which order, and how each number
/// is brought to mean 0 and deviation 1. In table_input.cc.
struct TableInput {
  std::vector<std::string> features;  ///< Names of the columns that are inputs, in their order.
  std::string target;                 ///< The name of the one that is predicted.
  std::size_t target_column = 0;      ///< Where it stands among all columns.
  bool header = true;                 ///< Files name their columns in the first line.
  std::vector<double> mean;           ///< Per feature, over the training samples.
  std::vector<double> factor;         ///< 1 / deviation; 1 where that is 0.

  std::size_t width() const { return features.size(); }

  /// The names of all columns, the target among them, as in the training file.
  std::vector<std::string> columns() const;

  /// The number a field is written as. Throws Error(invalid) with place and column.
  float number(std::size_t feature, const std::string& text, const formats::RowPlace& place) const;

  /// Learns mean and factor from the rows `train` of a table of raw numbers.
  void learn(std::span<const float> raw, std::span<const std::int64_t> train);

  /// Raw numbers, row after row, to the model's inputs.
  void standardise(std::span<const float> raw, float* input) const;
};

/// Which column of a file is which of a TableInput.
struct ColumnMap {
  static constexpr std::size_t kTarget = static_cast<std::size_t>(-1);

  std::vector<std::size_t> feature_of;  ///< Per column of the file: a feature's number, or kTarget.
  bool has_target = false;
};

/// Finds the columns of the training in another file, of which `first` is the first record: by
/// their names, in any order; where training had no header by their number, with or without the
/// target. Throws Error(invalid) naming the file and the column that is missing, there twice, or
/// not of the training.
ColumnMap map_columns(const TableInput& table, const std::vector<std::string>& first,
                      const std::string& file);

/// How a sparse row becomes a model's input: `width` floats, 0 where there is no entry.
struct SparseInput {
  std::int64_t width = 0;

  /// Throws Error(invalid) with its place for an entry beyond the width.
  void expand(const formats::SparseRow& row, const formats::RowPlace& place, float* input) const;
};

/// How an image of bytes becomes a model's input: a pixel p becomes (p / 255 - mean) / deviation.
struct ImageInput {
  std::vector<std::int64_t> shape;  ///< Channels, height, width.
  double mean = 0.1307;             ///< Of MNIST's training pixels,
  double deviation = 0.3081;        ///< and their deviation.

  /// `count` pixels to floats, the same on every machine.
  void scale(const std::uint8_t* pixels, float* input, std::size_t count) const;
};

/// Which bytes of a text a model knows, and the ids it knows them by: in ascending order, and after
/// them, where there is one, the unknown.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Of the distinct bytes of `text`.
  Vocabulary(std::string_view text, bool unknown);
  /// Of these bytes, which ascend.
  Vocabulary(std::vector<std::uint8_t> bytes, bool unknown);

  std::int64_t size() const {
    return static_cast<std::int64_t>(bytes_.size()) + (unknown_ ? 1 : 0);
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  bool unknown() const { return unknown_; }

  /// Of a byte that it knows, or has an unknown for; of others -1, see check().
  std::int64_t id(char c) const { return ids_[static_cast<unsigned char>(c)]; }

  /// Throws Error(invalid) unless every byte of `text` has an id, naming the character, `source`
  /// and the line, of which `first_line` is the text's first.
  void check(std::string_view text, const std::string& source, std::int64_t first_line = 1) const;

  /// By id; each a byte as it is, or kUnknownName.
  std::vector<std::string> names() const;

 private:
  std::array<std::int64_t, 256> ids_{};  ///< By byte; -1 where it has none.
  std::vector<std::uint8_t> bytes_;      ///< By id.
  bool unknown_ = false;
};

/// How text becomes a model's input: `context` characters, each as its id.
struct TextInput {
  Vocabulary vocabulary;
  std::int64_t context = 0;
};

}  // namespace cohort::data
