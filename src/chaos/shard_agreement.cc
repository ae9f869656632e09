#include "chaos/shard_agreement.h"

#include <fmt/format.h>

namespace cohort {
namespace {

std::int64_t count_of(const nlohmann::json& shard, const char* field) {
  return shard.value(field, std::int64_t(-1));
}

}  // namespace

std::vector<std::string> shard_disagreements(const nlohmann::json& summary,
                                             std::optional<std::int64_t> pushes) {
  const auto shards = summary.find("shards");
  if (shards == summary.end() || !shards->is_array() || shards->empty()) {
    return {"summary.json does not say what the servers have counted"};
  }
  std::vector<std::string> found;
  const auto& first = shards->front();
  for (std::size_t i = 0; i < shards->size(); ++i) {
    const auto& shard = (*shards)[i];
    for (const char* field : {"applied", "dropped"}) {
      if (count_of(shard, field) == count_of(first, field)) continue;
      found.push_back(fmt::format("server {} has {} {} pushes, server 0 {}", i, field,
                                  count_of(shard, field), count_of(first, field)));
    }
    if (count_of(shard, "missing") != 0) {
      found.push_back(fmt::format("server {} lacks {} pushes", i, count_of(shard, "missing")));
    }
    const std::int64_t taken = count_of(shard, "applied") + count_of(shard, "dropped");
    if (pushes && taken != *pushes) {
      found.push_back(
          fmt::format("server {} has taken {} pushes; there were {}", i, taken, *pushes));
    }
  }
  return found;
}

}  // namespace cohort
