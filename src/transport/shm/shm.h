#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "os/peer_watch.h"
#include "os/shared_wait.h"
#include "transport/engine_table.h"
#include "transport/transport.h"

namespace cohort::transport {

/// The door of this folder: messages through shared memory, between processes (or threads) of one
/// host.
///
///   shm_engine.cc     makes the regions: one rank creates memory, which has no name, and hands it
///                     to the others through the store (Store::give); they map it
///   shm_transport.cc  waiting, deadlines, deaths: a Transport
///   peer_link.h       messages: between this rank and one peer
///   rings.h           bytes: from one rank to another; where all of them stand in the region

struct ShmOptions {
  /// Bytes on their way from one rank to another; rounded up to a power of two. In large groups
  /// only neighbours have as many, see RingLayout.
  std::size_t ring_bytes = 256 << 10;
  /// The cores all ranks of the group share; count them before pinning.
  int cores = os::usable_cores();
  /// Of the ranks, those that use these cores; 0: all.
  int ranks_here = 0;
};

/// How large the region of a group must be.
std::size_t shm_bytes_needed(int size, const ShmOptions& options = {});

/// One rank's end of a group whose ranks (processes or threads of one host) share `region`: zeroed
/// memory that outlives the transport, best with pages on use. Every rank gives the same size and
/// options. There is no background thread: bytes move while a rank is inside isend(), irecv(),
/// wait() or progress(), and then for all its operations.
///
/// Throws Error(invalid) for a rank that is not of the group, or a region that is too small. A peer
/// whose process ends is noticed while waiting for it, by `watch`; what it had written before is
/// received all the same.
std::unique_ptr<Transport> make_shm_transport(int rank, int size, std::span<std::byte> region,
                                              os::PeerWatch watch, const ShmOptions& options = {});

/// Shared memory between processes, or threads, of one host. See EngineRow. Where there are ranks
/// on other hosts, as in an engine composed with another one, they count as ranks, but only those
/// of this host may be sent to or be in a group, and memory is shared by these.
std::unique_ptr<Engine> make_shm_engine(const EngineOptions& options, const Peers& peers,
                                        cluster::Store& store, Deadline deadline);

}  // namespace cohort::transport
