#pragma once

#include "transport/engine_table.h"

namespace cohort::transport {

/// The door of this folder: shared memory inside every host and TCP between hosts, at once.
///
///   host 0              host 1
///   0 ══ 1              2 ══ 3        ══ shm/: ranks of one host
///   └────┴──────────────┴────┘        ── gloo/: ranks of different hosts
///
/// A message takes the one way or the other by where its peer is; tags, order and errors are those
/// of that way. A transport gets a thread of its own the first time that its rank waits for another
/// host while a message inside its own is unfinished; composed.cc says why.
///
/// A group whose ranks share a host is one of shared memory, regions included; one whose ranks all
/// are on different hosts is one of TCP; others are composed again. Whoever wants to sum first
/// inside the hosts and then between them makes these two kinds of groups, or one schedule for all
/// (collective/algorithms.h). See EngineRow.
std::unique_ptr<Engine> make_composed_engine(const EngineOptions& options, const Peers& peers,
                                             cluster::Store& store, Deadline deadline);

}  // namespace cohort::transport
