#include "server/shard_rules.h"

#include <cmath>

#include "base/fail.h"

namespace cohort {

double ShardRules::weight_of(std::uint64_t staleness) const {
  const auto stale = static_cast<double>(staleness);
  switch (weight) {
    case Weight::none:
      return 1;
    case Weight::inverse:
      return staleness == 0 ? 1 : 1 / stale;
    case Weight::power:
      return std::pow(1 + stale, -weight_power);
  }
  return 1;
}

void check_rules(const ShardRules& rules) {
  if (rules.workers < 1) {
    fail(ErrorCode::invalid, "a server got {} workers; it needs at least one", rules.workers);
  }
  const bool quorum = rules.consistency == ShardRules::Consistency::quorum;
  if (quorum && rules.quorum < 1) {
    fail(ErrorCode::invalid, "the quorum is {}; it must be at least 1", rules.quorum);
  }
  if (!std::isfinite(rules.weight_power) || rules.weight_power < 0) {
    fail(ErrorCode::invalid, "weight_power is {}; it must be a finite number of at least 0",
         rules.weight_power);
  }
}

double factor_of(const ShardRules& rules, std::size_t pushes) {
  const auto workers = static_cast<double>(rules.workers);
  const bool quorum = rules.consistency == ShardRules::Consistency::quorum;
  // k pushes stand for those of all workers.
  const double all_of_some = quorum ? workers / static_cast<double>(pushes) : 1;
  return rules.deltas ? all_of_some / workers : all_of_some;
}

}  // namespace cohort
