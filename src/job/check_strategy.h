#pragma once

#include <cohort/job.h>

namespace cohort {

/// Throws Error(invalid) for a strategy whose keys do not go together, or not with the rest of the
/// job, saying what would be valid.
void check_strategy(const Job& job);

}  // namespace cohort
