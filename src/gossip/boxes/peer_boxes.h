#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/deadline.h"
#include "base/traffic.h"
#include "cluster/store.h"
#include "gossip/boxes/box.h"
#include "gossip/claims.h"
#include "gossip/topology.h"
#include "transport/engine.h"

namespace cohort::gossip {

/// Boxes, parcels, and who may write what.
///
/// A *parcel* (box.h) is a message with a weight: parameters, with a share of the sender's push-sum
/// weight, or gradients, with the number of pieces of work they are of. A *box* holds one parcel,
/// from one worker to another; there is one for every directed pair that the topology can use.
///
///                 put            box 0 → 1            take
///   worker 0 ───────────────▶ ┌───────────┐ ─────────────────▶ worker 1
///            ◀─── returned ── │ a parcel  │   read where it is, or copied from there
///                             └───────────┘
///                              and another one, box 1 → 0, for the way back
///
/// Only the sender puts, only the receiver takes, and neither waits: whoever finds the other one at
/// the box goes away and comes back later. What is in the way of the next parcel is replaced, added
/// to, or stays (WhenFull).
///
/// Weight is never made or lost. At any time a parcel's weight is in exactly one place: with its
/// sender (before put(), or when put() has said no), on its way or in the box, or with the receiver
/// that took it. Where a parcel is replaced, its weight goes back to the sender, through
/// returned(). Only who dies takes weight along: its own, and what is in the boxes to it or on its
/// way there.
///
/// There are two kinds, and the workers cannot tell them apart but by how late things come:
/// shared_boxes.cc has all boxes in memory that the workers share; remote_boxes.cc has each
/// worker's boxes in its own memory, and senders call its server (remote_box.h).

/// Who of the peers is still there, as far as one worker knows. Owned by the boxes whose
/// attendance() it is; the same thread.
class Attendance {
 public:
  virtual ~Attendance() = default;

  /// Whether `peer` cannot be reached any more, as far as is known. It costs its own parcels,
  /// nothing else.
  virtual bool lost(int peer) = 0;

  /// A peer that is lost, lowest first. Looks for one: a target that is gone is found within the
  /// time of a few calls.
  virtual std::optional<int> lost_peer() = 0;

  /// For the others this worker is lost from now on.
  virtual void leave() noexcept = 0;
};

/// One worker's side of all its boxes. No call here waits for a peer. One thread at a time.
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

  virtual Attendance& attendance() = 0;

  /// Where this worker gets its work; lives as long as the boxes. Its calls may wait for rank 0.
  virtual Claims& claims() = 0;

  /// Of the parcels; between hosts of all messages.
  virtual Traffic traffic() const = 0;
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
std::unique_ptr<PeerBoxes> make_peer_boxes(const PeerBoxesOptions& options,
                                           transport::Engine& engine, cluster::Store& store);

/// Boxes in a region that all workers of one host share. The engine must outlive them.
std::unique_ptr<PeerBoxes> make_shared_boxes(const PeerBoxesOptions& options,
                                             transport::Engine& engine);

/// Boxes between workers that share no memory: every worker has the boxes for what it receives in
/// its own memory, and an RpcServer that fills them, whose address it tells in the store. To every
/// peer one call at a time is under way, and one more parcel may wait, combined as WhenFull says.
/// Rank 0 counts the claims.
std::unique_ptr<PeerBoxes> make_remote_boxes(const PeerBoxesOptions& options,
                                             transport::Engine& engine, cluster::Store& store);

struct MeetingOptions {
  std::string key;  ///< In the store; another one each time.
  int world = 1;
  Deadline deadline;
};

/// All workers come together and empty the boxes. All call it, once they put nothing more: when it
/// returns, all that was put into boxes has been taken. `take_arrived` is called again and again,
/// because a sender may have to wait for its peer to take before its last parcels fit.
///
/// A worker counts itself in the store once all its parcels are in the peers' boxes; when all have,
/// everybody takes once more. A worker that finds a peer lost makes the count negative, so that all
/// others give up with the same words at once. Throws Error(peer_lost) when a peer is gone,
/// Error(timeout) when not all have come before the deadline.
void come_together(PeerBoxes& boxes, cluster::Store& store, const MeetingOptions& options,
                   const std::function<void()>& take_arrived);

}  // namespace cohort::gossip
