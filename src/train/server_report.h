#pragma once

#include <cohort/train.h>

#include "server/run_server.h"
#include "train/control_block.h"

namespace cohort {

/// What a server has counted, as plain numbers.
ServerReport report_of(const ServerResult& result);

/// The staleness of the pushes to all servers together.
StalenessSummary summarize_staleness(std::span<const ServerSlot> servers);

/// What each of them has counted.
std::vector<ShardSummary> summarize_shards(std::span<const ServerSlot> servers);

}  // namespace cohort
