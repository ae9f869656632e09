#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"
#include "chaos/faults/fault_schedule.h"

namespace cohort {

/// The failpoint of a planted fault; empty where it is not planted. Where there are several that
/// fit, chance decides.
std::string draw_point(Fault fault, TaskRole role, Random& random);

/// What `cohort train --faults` takes for the planted fault of these events; empty where there is
/// none. `steps` are those of the run.
std::string planted_faults(const RoundPlan& plan, const ClusterSize& size, std::int64_t steps);

/// The number of the task a planted fault is in.
int planted_task(const FaultEvent& event, const ClusterSize& size);

}  // namespace cohort
