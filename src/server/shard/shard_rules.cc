#include "server/shard/shard_rules.h"

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
  if (rules.parts < 1) {
    fail(ErrorCode::invalid, "a server got steps of {} parts; they have at least one", rules.parts);
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

double share_of(const ShardRules& rules, std::size_t pushes) {
  if (rules.consistency == ShardRules::Consistency::sync) return 1;
  return static_cast<double>(pushes) / rules.parts;
}

double factor_of(const ShardRules& rules, std::size_t pushes) {
  const bool sync = rules.consistency == ShardRules::Consistency::sync;
  const int parts = sync ? rules.workers : rules.parts;
  return 1 / share_of(rules, pushes) / (rules.deltas ? parts : 1);
}

}  // namespace cohort
