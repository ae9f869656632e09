#pragma once

#include "transport/engine_table.h"

namespace cohort {

/// Shared memory between processes, or threads, of one host. See EngineRow. Where there are ranks
/// on other hosts, as in an engine composed with another one, they count as ranks, but only those
/// of this host may be sent to or be in a group, and memory is shared by these.
std::unique_ptr<Engine> make_shm_engine(const EngineOptions& options, const Peers& peers,
                                        Store& store, Deadline deadline);

}  // namespace cohort
