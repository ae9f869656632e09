#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/raw_text.h"

namespace cohort::formats {

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

}  // namespace cohort::formats
