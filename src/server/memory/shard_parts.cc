#include "server/memory/shard_parts.h"

#include <algorithm>

#include "collective/schedule.h"
#include "compression/matrices.h"
#include "optimizer/optimizer.h"
#include "server/memory/shard_memory.h"

namespace cohort {

ShardPart dense_part(std::size_t dense, int servers, int server) {
  const Segment segment = segment_of(dense, servers, server);
  return {segment.begin, segment.end};
}

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
  ShardShape shape{.dense = dense.end - dense.begin,
                   .matrices = matrices_within(model.matrices, dense.begin, dense.end)};
  for (const TableSize& table : model.tables) {
    const ShardPart rows = rows_part(table.rows, servers, server);
    shape.tables.push_back({.first_row = static_cast<std::uint32_t>(rows.begin),
                            .end_row = static_cast<std::uint32_t>(rows.end),
                            .width = table.width});
  }
  return shape;
}

std::size_t shard_memory_bytes(const ModelSize& model, int servers, int server,
                               const OptimizerOptions& optimizer) {
  return ShardMemory::bytes_needed(shard_shape(model, servers, server),
                                   make_optimizer(optimizer)->slots().size());
}

std::size_t most_servers(std::size_t dense) {
  // segment_of() gives out whole blocks of 16, so that many servers get one each.
  constexpr std::size_t kBlock = 16;
  return (dense + kBlock - 1) / kBlock;
}

}  // namespace cohort
