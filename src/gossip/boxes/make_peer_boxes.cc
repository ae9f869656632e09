#include "gossip/boxes/peer_boxes.h"
#include "gossip/boxes/remote_boxes.h"
#include "gossip/boxes/shared_boxes.h"

namespace cohort {

std::unique_ptr<PeerBoxes> make_peer_boxes(const PeerBoxesOptions& options, Engine& engine,
                                           Store& store) {
  if (engine.shared_regions() != nullptr) return make_shared_boxes(options, engine);
  return make_remote_boxes(options, engine, store);
}

}  // namespace cohort
