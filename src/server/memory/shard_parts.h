#pragma once

#include <cohort/job.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/memory/shard_shape.h"

namespace cohort {

/// Which part of the model each server has: one half-open range, balanced by bytes.
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
  std::vector<MatrixShape> matrices = {};  ///< Within the dense floats.
};

ShardShape shard_shape(const ModelSize& model, int servers, int server);

/// The lasting memory that a server needs whose optimizer this is. Most of it is never used, and
/// then takes no room.
std::size_t shard_memory_bytes(const ModelSize& model, int servers, int server,
                               const OptimizerOptions& optimizer);

/// How many servers can have a part of the dense floats.
std::size_t most_servers(std::size_t dense);

}  // namespace cohort
