#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/deadline.h"
#include "base/traffic.h"

namespace cohort::transport {

/// Distinguishes messages between the same two ranks. Messages of one (sender, receiver, tag) are
/// received in the order they were sent; messages of different tags may be received in any order.
using Tag = std::uint64_t;

/// A send or receive that was started. It must be waited for, or the transport closed, before the
/// bytes it was given go away.
class Operation {
 public:
  virtual ~Operation() = default;
};

using OperationPtr = std::unique_ptr<Operation>;

/// Moves bytes between the ranks of a group. Every back end (a folder beside this file) passes the
/// same conformance suite.
///
/// A receive names exactly the size that was sent; a different size is an error (corrupt). When a
/// peer closes, dies or stays silent past a deadline, the call that needs it throws Error
/// (peer_lost or timeout) naming its rank, and every later call that needs that peer throws again:
/// a failed peer stays failed.
///
/// A send may stay incomplete until the peer has started the matching receive: start the receives
/// a rank owes its peers before waiting for its own sends.
///
/// One thread at a time may use a transport, but any thread may close it: what another one waits
/// for there ends with an Error.
///
/// What the back ends leave open:
///
///                         inproc               shm                     gloo
///   a send is complete    small: at once,      when all bytes are      when the peer has started
///                         large: received      in the ring             to receive
///   bytes move            when the second      while a rank is inside  by a background thread
///                         side starts          a call
///   a timeout costs       that peer            that peer               all peers
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts sending `bytes` to `peer`. The bytes must stay unchanged until wait() returned.
  virtual OperationPtr isend(int peer, Tag tag, std::span<const std::byte> bytes) = 0;

  /// Starts receiving from `peer`. The bytes are defined once wait() returned.
  virtual OperationPtr irecv(int peer, Tag tag, std::span<std::byte> bytes) = 0;

  /// Returns when `operation` is complete. For a send that means the bytes may be reused, not that
  /// the peer has them.
  virtual void wait(Operation& operation, Deadline deadline) = 0;

  /// Moves what can be moved now, without waiting, and says whether something is still under way
  /// that needs such calls: false where bytes move by themselves. Does not throw.
  virtual bool progress() noexcept { return false; }

  /// Tells the peers that this rank is gone for good and releases what it holds. Idempotent, does
  /// not throw; the destructor calls it.
  virtual void close() noexcept = 0;

  /// Of payload, so far.
  virtual Traffic traffic() const = 0;
};

}  // namespace cohort::transport
