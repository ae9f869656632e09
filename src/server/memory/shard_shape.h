#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compression/codec.h"

namespace cohort {

struct TableShape {
  std::uint32_t first_row = 0;  ///< Of the whole table, that this shard has,
  std::uint32_t end_row = 0;    ///< and the first it has not.
  std::uint32_t width = 0;      ///< Floats of a row.

  std::size_t rows() const { return end_row - first_row; }
  std::size_t floats() const { return rows() * width; }
};

struct ShardShape {
  std::size_t dense = 0;  ///< Floats.
  std::vector<TableShape> tables = {};
  std::vector<MatrixShape> matrices = {};  ///< Within the dense floats, for codecs that use them.

  /// Dense ones and those of all tables.
  std::size_t floats() const {
    std::size_t sum = dense;
    for (const TableShape& table : tables) sum += table.floats();
    return sum;
  }
};

}  // namespace cohort
