#pragma once

#include <cohort/train.h>

#include "launch/control/control_block.h"

namespace cohort {

/// The staleness of the pushes to all servers together.
StalenessSummary summarize_staleness(std::span<const ServerReport> servers);

/// What each of them has counted.
std::vector<ShardSummary> summarize_shards(std::span<const ServerReport> servers);

}  // namespace cohort
