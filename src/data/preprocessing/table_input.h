#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/preprocessing/row_place.h"

namespace cohort {

/// How a row of a table becomes a model's input: which columns, in which order, and how each number
/// is brought to mean 0 and deviation 1. Filled by the loader of the training data; whoever scores
/// uses the same functions, so that both make the same floats of the same text.
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
  float number(std::size_t feature, const std::string& text, const RowPlace& place) const;

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

/// By the names in `first`, the first record of the file, in any order; where training had no
/// header by their number, with or without the target. Throws Error(invalid) naming the file and
/// the column that is missing, there twice, or not of the training.
ColumnMap map_columns(const TableInput& table, const std::vector<std::string>& first,
                      const std::string& file);

}  // namespace cohort
