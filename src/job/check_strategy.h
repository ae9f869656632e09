#pragma once

#include <cohort/job.h>

namespace cohort {

/// Whether the strategy's model is kept by servers; where the job names none it gets one.
bool uses_servers(const StrategyOptions& strategy);

/// Throws Error(invalid) for a strategy whose keys do not go together, or not with the rest of the
/// job, saying what would be valid.
void check_strategy(const Job& job);

}  // namespace cohort
