#pragma once

#include "transport/engine_table.h"

namespace cohort {

/// Shared memory inside every host and TCP between hosts, at once. A group whose ranks share a host
/// is one of shared memory, regions included; one whose ranks all are on different hosts is one of
/// TCP; others are composed again. So who sums first inside the host and then between hosts, one
/// lane per local rank, makes the two kinds of groups, or one schedule for all
/// (collective/hosts.h).
std::unique_ptr<Engine> make_composed_engine(const EngineOptions& options, const Peers& peers,
                                             Store& store, Deadline deadline);

}  // namespace cohort
