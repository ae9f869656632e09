#pragma once

#include "server/shard.h"

namespace cohort {

/// Throws Error(invalid) for rules no server can follow.
void check_rules(const ShardRules& rules);

/// What the sum of `pushes` weighted pushes is multiplied by in an update.
double factor_of(const ShardRules& rules, std::size_t pushes);

}  // namespace cohort
