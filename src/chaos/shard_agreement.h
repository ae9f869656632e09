#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cohort {

/// Whether all servers of a run have applied the same pushes, each once, by what summary.json says
/// each has counted (`shards`): a sentence for everything that does not agree. A push goes to all
/// of them in parts, so a part that one lacks or has twice shows in its counts. A worker that is
/// killed between its pushes to two servers takes the second one with it: that is told as
/// `missing`, once for each task that was lost at most.
struct ExpectedPushes {
  std::optional<std::int64_t> count = {};  ///< How many there must be, where that is known.
  std::int64_t losses = 0;                 ///< Of tasks.
};
std::vector<std::string> shard_disagreements(const nlohmann::json& summary,
                                             const ExpectedPushes& expected);

}  // namespace cohort
