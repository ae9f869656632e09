#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/shard/shard_rules.h"

namespace cohort::server {

/// What the servers of a run have after it, as the one who starts them needs to know it.
struct ReconciledShards {
  bool have_model = false;
  std::uint64_t version = 0;          ///< The smallest of the servers'.
  std::vector<int> from_copies = {};  ///< Servers whose memory was lost and taken from its copy.
};

/// Brings the memories of all servers of a run into a state from which servers can go on together.
/// No server may run: call it once all old ones have ended, before the first new one starts.
///
/// An update that a killed server was at is undone. In lockstep (sync) a server may also have made
/// an update that another one lacks, because a worker died between its two pushes, or a server in
/// its update; it goes back by that one. That loses nothing: a worker goes on when all servers have
/// answered it, so nobody has seen that update complete. For the same reason no server is ahead by
/// two. A first model that not all servers got is none.
///
/// Otherwise servers have applied pushes in orders of their own, so none can be undone. What one
/// has applied and another lacks is counted there as missing, and the work it is of is not handed
/// out again. Workers that live make their unanswered pushes again in the next group, which fills
/// the gap. What stays missing are pushes of workers that died between two servers.
///
/// `replicas`: by server, where each keeps the copy of the server before; or empty. A shard whose
/// memory was lost, and is zeroed, is taken from its copy.
ReconciledShards reconcile_shards(std::span<const std::span<std::byte>> memories,
                                  const ShardRules& rules,
                                  std::span<const std::span<std::byte>> replicas = {});

}  // namespace cohort::server
