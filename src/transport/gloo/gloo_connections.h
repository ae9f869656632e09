#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "cluster/store.h"
#include "transport/gloo/gloo.h"

namespace cohort::transport {

/// One rank's connections through libgloo, and three guards that make them keep what a Transport
/// promises:
///
///   what libgloo does                                          what closes the gap
///   a send is complete when the kernel has taken it; a close   Receipts: a close waits until the
///   drops what the kernel still holds                          peers have read everything
///   a wait for a peer that died in the middle of a message     PeerAlarms: say whether the
///   does not end                                               connection has failed
///   a wait does not end when this side closes the connection   AwaitedBuffer: ends the wait now
///                                                              and then, for the user to look
///
/// Receipts and alarms are messages in slots of their own (see gloo_transport.cc), so they never
/// meet the user's. GlooTransport owns one of each guard; all must go before the context does.

/// Connects this rank with every other one; the ranks exchange their addresses through the store.
/// All ranks call it at about the same time. Returns once every rank is connected with every other,
/// and each has proved to each that it knows the run's secret.
/// Throws Error naming the rank that could not be reached.
std::shared_ptr<::gloo::transport::Context> connect_gloo_mesh(int rank, int size,
                                                              cluster::Store& store,
                                                              const GlooOptions& options);

/// Makes it safe to close. Every rank starts a send of one byte to each peer, a *receipt*, which
/// libgloo's thread passes on when the peer starts to receive it; since a connection keeps the
/// order, a receipt that arrives proves that the peer's libgloo has read all that was sent before
/// it was asked for. The peer's own thread has no part in it.
///
///   closing rank                              peer
///   … sends of its user ────────────────────▶ read by libgloo's thread, in order
///   collect(): recv in the receipts' slot ──▶ meets the send that has waited since construction
///                          ◀── one byte ─────
class Receipts {
 public:
  /// Every rank of the context must make one.
  explicit Receipts(::gloo::transport::Context& context);

  /// Returns when every peer that still answers has read all that was sent to it, or at the
  /// deadline.
  void collect(::gloo::transport::Context& context, Deadline deadline) noexcept;

 private:
  using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

  std::byte given_{};             // What all receipts of this rank consist of.
  std::vector<std::byte> taken_;  // By peer.
  std::vector<Buffer> gives_;     // The sends that wait; they refer to given_.
};

/// Tells whether the connection to a peer has failed, without waiting. For every peer there is a
/// receive of a byte that never comes: libgloo ends it with an exception when the connection fails.
class PeerAlarms {
 public:
  explicit PeerAlarms(::gloo::transport::Context& context);

  /// Throws what libgloo says where the connection to `peer` has failed.
  void check(int peer);

 private:
  using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

  std::byte nothing_{};
  std::vector<Buffer> receives_;  // By peer; none for this rank.
};

/// The buffer that a transport's user waits for. libgloo's own waits end neither when this side
/// closes the connection, nor (if the message is half sent or received) when the peer dies. So from
/// time to time a thread of its own ends the wait, for the user to look around and wait again.
/// Thread-safe: interrupt() is for whoever closes the transport.
class AwaitedBuffer {
 public:
  AwaitedBuffer();
  ~AwaitedBuffer();

  /// The user waits for `buffer` while it lives.
  class Scope {
   public:
    Scope(AwaitedBuffer& awaited, ::gloo::transport::UnboundBuffer& buffer) : awaited_(awaited) {
      awaited_.set(&buffer);
    }
    ~Scope() { awaited_.set(nullptr); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    AwaitedBuffer& awaited_;
  };

  /// Ends the wait there is, if any: waitSend() or waitRecv() returns false.
  void interrupt();

 private:
  void set(::gloo::transport::UnboundBuffer* buffer);
  void interrupt_now_and_then();

  std::mutex mutex_;  // Guards the next two.
  ::gloo::transport::UnboundBuffer* buffer_ = nullptr;
  bool ending_ = false;
  std::condition_variable end_;
  std::thread ticker_;  // Last: it uses what stands above.
};

}  // namespace cohort::transport
