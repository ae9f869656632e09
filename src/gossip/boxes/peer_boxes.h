#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/timeout.h"
#include "cluster/store.h"
#include "gossip/boxes/box.h"
#include "gossip/claims.h"
#include "gossip/topology.h"
#include "transport/engine.h"

namespace cohort {

/// One worker's side of all the boxes between the workers: a box for every directed pair that the
/// topology can use. No call here waits for a peer. One thread at a time.
class PeerBoxes {
 public:
  virtual ~PeerBoxes() = default;

  /// Puts a parcel into the box to `peer`, one of targets_of(); true if it is there now, or will be
  /// as soon as the connection allows. False where the peer is just reading, is lost, or WhenFull
  /// says refuse: the caller keeps what it wanted to send.
  virtual bool put(int peer, const Parcel& parcel, WhenFull when) = 0;

  /// The weight of parcels that were replaced before they were taken (WhenFull::replace), since
  /// this was last asked. Without shared memory it may come back late: all of it has when idle().
  virtual double returned() = 0;

  /// No parcel of this worker waits for `peer`: then the next put() succeeds.
  virtual bool empty(int peer) = 0;

  /// What has arrived from `peer`, one of sources_of(). It must be gone before the next take() of
  /// the same peer.
  virtual std::optional<Box::Taken> take(int peer) = 0;

  /// Everything put is in the peers' boxes. Without shared memory it becomes so only while all
  /// workers go on calling things here.
  virtual bool idle() = 0;

  /// Whether `peer` cannot be reached any more, as far as is known. It costs its own parcels,
  /// nothing else.
  virtual bool lost(int peer) = 0;

  /// A peer that is lost, lowest first. Looks for one: a target that is gone is found within the
  /// time of a few calls.
  virtual std::optional<int> lost_peer() = 0;

  /// For the others this worker is lost from now on.
  virtual void leave() noexcept = 0;

  virtual Claims& claims() = 0;

  /// Bytes of the parcels; between hosts of all messages.
  virtual std::uint64_t bytes_sent() const = 0;
  virtual std::uint64_t bytes_received() const = 0;
};

struct PeerBoxesOptions {
  Topology topology = Topology::exponential;
  std::size_t message_bytes = 0;  ///< The longest message.
  ClaimRange claims = {};         ///< The same on all workers.
  /// For the others to appear, and for a claim.
  Timeout timeout = {};
};

/// Boxes in memory that all share where the engine has some, remote ones otherwise. All workers
/// call it together.
std::unique_ptr<PeerBoxes> make_peer_boxes(const PeerBoxesOptions& options, Engine& engine,
                                           Store& store);

}  // namespace cohort
