#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "os/peer_watch.h"
#include "os/shared_wait.h"
#include "transport/transport.h"

namespace cohort {

struct ShmOptions {
  /// Bytes on their way from one rank to another; rounded up to a power of two. In large groups
  /// only neighbours have as many, see ring_layout.h.
  std::size_t ring_bytes = 256 << 10;
  /// The cores all ranks of the group share; count them before pinning.
  int cores = usable_cores();
  /// Of the ranks, those that use these cores; 0: all.
  int ranks_here = 0;
};

/// How large the region of a group must be.
std::size_t shm_bytes_needed(int size, const ShmOptions& options = {});

/// One rank's end of a group whose ranks (processes or threads of one host) share `region`: zeroed
/// memory that outlives the transport, best with pages on use. Every rank gives the same size and
/// options. There is no background thread: bytes move while a rank is inside isend(), irecv() or
/// wait(), and then for all its operations.
std::unique_ptr<Transport> make_shm_transport(int rank, int size, std::span<std::byte> region,
                                              PeerWatch watch, const ShmOptions& options = {});

}  // namespace cohort
