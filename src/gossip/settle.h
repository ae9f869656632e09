#pragma once

#include <functional>
#include <string>

#include "base/deadline.h"
#include "cluster/store.h"
#include "gossip/boxes/peer_boxes.h"

namespace cohort {

struct SettleOptions {
  std::string key;  ///< In the store; another one each time.
  int world = 1;
  Deadline deadline;
};

/// All workers call it, once they put nothing more: when it returns, all that was put into boxes
/// has been taken. `take_arrived` is called again and again, because a sender may have to wait for
/// its peer to take before its last parcels fit. Throws Error(peer_lost) when a peer is gone,
/// Error(timeout) when not all have come before the deadline.
void settle(PeerBoxes& boxes, Store& store, const SettleOptions& options,
            const std::function<void()>& take_arrived);

}  // namespace cohort
