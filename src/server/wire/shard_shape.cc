#include "server/wire/shard_shape.h"

#include <algorithm>

#include "base/fail.h"
#include "collective/schedule.h"
#include "compression/codec.h"

namespace cohort::server {

ShardPart dense_part(std::size_t dense, int servers, int server) {
  const collective::Segment segment = collective::segment_of(dense, servers, server);
  return {segment.begin, segment.end};
}

/// The first rows % servers servers have one row more than the others.
ShardPart rows_part(std::size_t rows, int servers, int server) {
  const auto parts = static_cast<std::size_t>(servers);
  const auto begin_of = [&](int part) {
    const auto before = static_cast<std::size_t>(part);
    return before * (rows / parts) + std::min(before, rows % parts);
  };
  return {begin_of(server), begin_of(server + 1)};
}

ShardShape shard_shape(const ModelSize& model, int servers, int server) {
  const ShardPart dense = dense_part(model.dense, servers, server);
  ShardShape shape{
      .dense = dense.end - dense.begin,
      .matrices = compression::matrices_within(model.matrices, dense.begin, dense.end)};
  for (const TableSize& table : model.tables) {
    const ShardPart rows = rows_part(table.rows, servers, server);
    shape.tables.push_back({.first_row = static_cast<std::uint32_t>(rows.begin),
                            .end_row = static_cast<std::uint32_t>(rows.end),
                            .width = table.width});
  }
  return shape;
}

void check_shape(const ShardShape& shape) {
  // More floats than any machine has, and few enough that no size made of them overflows.
  constexpr std::size_t kMost = std::size_t{1} << 48;
  std::size_t rest = kMost;
  const auto count = [&](std::size_t floats) {
    if (floats > rest) fail(ErrorCode::invalid, "a server got a model of more floats than can be");
    rest -= floats;
  };
  count(shape.dense);
  for (const TableShape& table : shape.tables) {
    count(table.floats());
    if (table.end_row >= table.first_row && table.width > 0) continue;
    fail(ErrorCode::invalid, "a server got the rows {} to {} of a table {} floats wide",
         table.first_row, table.end_row, table.width);
  }
}

std::size_t most_servers(std::size_t dense) {
  // segment_of() gives out whole blocks of 16, so that many servers get one each.
  constexpr std::size_t kBlock = 16;
  return (dense + kBlock - 1) / kBlock;
}

}  // namespace cohort::server
