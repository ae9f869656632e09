#pragma once

#include "server/shard/shard.h"

namespace cohort {

/// Throws Error(invalid) for rules no server can follow.
void check_rules(const ShardRules& rules);

/// Which share of a step an update with so many pushes is.
double share_of(const ShardRules& rules, std::size_t pushes);

/// What the sum of so many weighted pushes is multiplied by to have the size of a whole step's.
double factor_of(const ShardRules& rules, std::size_t pushes);

}  // namespace cohort
