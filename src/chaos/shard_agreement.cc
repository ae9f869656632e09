#include "chaos/shard_agreement.h"

#include <fmt/format.h>

namespace cohort {
namespace {

std::int64_t count_of(const nlohmann::json& shard, const char* field) {
  return shard.value(field, std::int64_t(-1));
}

std::int64_t applied_or_told(const nlohmann::json& shard) {
  return count_of(shard, "applied") + count_of(shard, "missing");
}

}  // namespace

std::vector<std::string> shard_disagreements(const nlohmann::json& summary,
                                             const ExpectedPushes& expected) {
  const auto shards = summary.find("shards");
  if (shards == summary.end() || !shards->is_array() || shards->empty()) {
    return {"summary.json does not say what the servers have counted"};
  }
  std::vector<std::string> found;
  const auto& first = shards->front();
  for (std::size_t i = 0; i < shards->size(); ++i) {
    const auto& shard = (*shards)[i];
    if (count_of(shard, "dropped") != count_of(first, "dropped")) {
      found.push_back(fmt::format("server {} has dropped {} pushes, server 0 {}", i,
                                  count_of(shard, "dropped"), count_of(first, "dropped")));
    }
    if (applied_or_told(shard) != applied_or_told(first)) {
      found.push_back(
          fmt::format("server {} has applied {} pushes and misses {}, server 0 {} and {}", i,
                      count_of(shard, "applied"), count_of(shard, "missing"),
                      count_of(first, "applied"), count_of(first, "missing")));
    }
    if (count_of(shard, "missing") > expected.losses) {
      found.push_back(fmt::format("server {} lacks {} pushes; {} tasks were lost", i,
                                  count_of(shard, "missing"), expected.losses));
    }
    const std::int64_t accounted = applied_or_told(shard) + count_of(shard, "dropped");
    if (expected.count && accounted != *expected.count) {
      found.push_back(fmt::format("server {} accounts for {} pushes; there were {}", i, accounted,
                                  *expected.count));
    }
  }
  return found;
}

}  // namespace cohort
