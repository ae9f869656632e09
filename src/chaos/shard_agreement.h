#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cohort {

/// Whether all servers of a run have applied the same pushes, each once, by what summary.json says
/// each has counted (`shards`): a sentence for everything that does not agree. A push goes to all
/// of them in parts, so a part that one lacks or has twice shows in its counts. `pushes` is how
/// many there must be, where that is known.
std::vector<std::string> shard_disagreements(const nlohmann::json& summary,
                                             std::optional<std::int64_t> pushes);

}  // namespace cohort
