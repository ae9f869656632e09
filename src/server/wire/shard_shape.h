#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compression/codec.h"

namespace cohort::server {

/// How a model is cut into shards: which server has which part of it. Pure arithmetic on (model,
/// servers, server): workers, servers and the launcher each compute it for themselves and come to
/// the same result.
///
///   dense floats  |  server 0  |  server 1  |  server 2  |     half-open ranges, one a server
///   rows, table 0 |  server 0  |  server 1  |  server 2  |     every table by itself
///
/// A server may have none of the dense floats (see most_servers()), and no rows of a small table.

/// One server's part of the dense floats or of the rows of a table: a half-open range.
struct ShardPart {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Of the dense floats.
ShardPart dense_part(std::size_t dense, int servers, int server);

/// Of the rows of a table.
ShardPart rows_part(std::size_t rows, int servers, int server);

/// What servers have to know of a model.
struct TableSize {
  std::uint32_t rows = 0;
  std::uint32_t width = 0;  ///< Floats of a row.
};
struct ModelSize {
  std::size_t dense = 0;  ///< Floats outside tables.
  std::vector<TableSize> tables = {};
  std::vector<compression::MatrixShape> matrices = {};  ///< Within the dense floats.
};

/// A shard's rows of one table.
struct TableShape {
  std::uint32_t first_row = 0;  ///< Of the whole table, that this shard has,
  std::uint32_t end_row = 0;    ///< and the first it has not.
  std::uint32_t width = 0;      ///< Floats of a row.

  std::size_t rows() const { return end_row - first_row; }
  std::size_t floats() const { return rows() * width; }
};

/// One server's part of a model.
struct ShardShape {
  std::size_t dense = 0;  ///< Floats.
  std::vector<TableShape> tables = {};
  std::vector<compression::MatrixShape> matrices =
      {};  ///< Within the dense floats, for codecs that use them.

  /// Dense ones and those of all tables; without optimizer slots.
  std::size_t floats() const {
    std::size_t sum = dense;
    for (const TableShape& table : tables) sum += table.floats();
    return sum;
  }
};

ShardShape shard_shape(const ModelSize& model, int servers, int server);

/// Throws Error(invalid) for a shape that no shard can have: a table that ends before it begins or
/// has rows of no floats, or more floats than can be counted in bytes.
void check_shape(const ShardShape& shape);

/// How many servers can have a part of the dense floats.
std::size_t most_servers(std::size_t dense);

}  // namespace cohort::server
