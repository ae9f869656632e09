#pragma once

#include <cstddef>

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

/// How many servers can have a part of the dense floats.
std::size_t most_servers(std::size_t dense);

}  // namespace cohort
