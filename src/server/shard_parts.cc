#include "server/shard_parts.h"

#include <algorithm>

#include "collective/schedule.h"

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

std::size_t most_servers(std::size_t dense) {
  // segment_of() gives out whole blocks of 16, so that many servers get one each.
  constexpr std::size_t kBlock = 16;
  return (dense + kBlock - 1) / kBlock;
}

}  // namespace cohort
