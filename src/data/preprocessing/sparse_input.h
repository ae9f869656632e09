#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/preprocessing/row_place.h"

namespace cohort {

/// A line of a LIBSVM file: "label index:value index:value …".
struct SparseRow {
  struct Entry {
    std::int64_t column = 0;  ///< From 0; they ascend.
    float value = 0;
  };
  std::string label;  ///< A number; empty where the line has none.
  std::vector<Entry> entries;
};

/// Reads a line; false where there is nothing in it but blanks and a comment. Throws Error(invalid)
/// with its place for what is not of that form.
bool read_sparse_row(std::string_view text, const RowPlace& place, SparseRow& row);

/// How a sparse row becomes a model's input: `width` floats, 0 where there is no entry.
struct SparseInput {
  std::int64_t width = 0;

  /// Throws Error(invalid) with its place for an entry beyond the width.
  void expand(const SparseRow& row, const RowPlace& place, float* input) const;
};

}  // namespace cohort
