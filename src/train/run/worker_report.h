#pragma once

#include "cluster/store.h"
#include "launch/control/control_block.h"

namespace cohort {

/// Workers whose launcher is not the chief's tell the chief their results through the store, so
/// that one summary has them all.
void send_report(Store& store, int rank, const WorkerResult& result);

/// In the chief: fills the slots of all other ranks. Ranks that do not report in time stay as they
/// are.
void collect_reports(Store& store, ControlBlock& control, Deadline deadline);

}  // namespace cohort
