#pragma once

#include <memory>

#include "gossip/boxes/peer_boxes.h"

namespace cohort {

/// Boxes in a region that all workers of one host share.
std::unique_ptr<PeerBoxes> make_shared_boxes(const PeerBoxesOptions& options, Engine& engine);

}  // namespace cohort
