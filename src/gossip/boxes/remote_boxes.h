#pragma once

#include <memory>

#include "gossip/boxes/peer_boxes.h"

namespace cohort {

/// Boxes between workers that share no memory: every worker has the boxes for what it receives in
/// its own memory, and an RpcServer that fills them. To every peer one call at a time is under way,
/// and one more parcel may wait, combined as WhenFull says. Rank 0 counts the claims.
std::unique_ptr<PeerBoxes> make_remote_boxes(const PeerBoxesOptions& options, Engine& engine,
                                             Store& store);

}  // namespace cohort
