#pragma once

#include <cohort/error.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/traffic.h"
#include "cluster/pass.h"

namespace cohort::rpc {

/// Calls between processes by gRPC; nobody outside this folder sees gRPC itself. A call sends one
/// message of bytes and gets one back. Messages travel as streams of frames of bounded size, so
/// they may be large, and never larger than the receiver's limit; where both are known to be small,
/// as one frame each (rpc/wire.h).
///
/// Who may call. Every connection proves first, both ways, that its ends know the run's secret
/// (cluster/handshake.h); only then gRPC gets the socket and reads its first byte. From then on the
/// server knows of every call which member of the run makes it.
///
/// Threads. gRPC has threads of its own, which read, write, and call a server's handler; they must
/// not be held up, so a handler hands work that takes time to a thread of its room, and that one
/// answers. A client's caller waits on its own thread. A server has one thread here, which lets
/// connections in.
///
/// Failures. Every call has a deadline, at which both ends give it up: Error(timeout). A server
/// that goes away is Error(peer_lost), what it refuses with arrives as the Error it threw, with
/// code, rank and words. Nothing is tried again here: only the caller knows whether its call may be
/// made twice. Where an end has no memory for a message, or for whoever comes, that call or connection
/// fails with Error(no_space) or is dropped, and the process goes on; only what gRPC asks for itself,
/// it must get.

using Bytes = std::vector<std::byte>;

/// What a message is made of, sent one part after the other without being put together first.
using MessageParts = std::vector<std::span<const std::byte>>;

/// A call that a server has received. It is answered once, now or later, by any thread. One that is
/// destroyed unanswered is answered with an error.
class RpcCall {
 public:
  virtual ~RpcCall() = default;

  virtual std::span<const std::byte> request() const = 0;

  /// Who is at the other end, as it has proved.
  virtual const cluster::Member& caller() const = 0;

  /// The parts must stay unchanged until `sent` is called: on a thread of the server, or at once
  /// where the message is small or the call already over (its deadline has passed, its client or
  /// this server is gone).
  virtual void reply(const MessageParts& parts, std::function<void()> sent = {}) = 0;
  virtual void fail(const Error& error) = 0;
};

/// A limit below this is of no use: whatever is said now and then is smaller. Who expects larger
/// messages knows how large, and says so.
inline constexpr std::size_t kLeastMessageLimit = 64 << 20;

struct RpcOptions {
  std::size_t max_message_bytes = kLeastMessageLimit;  ///< That this end takes; more is refused.
  std::size_t frame_bytes = 1 << 20;                   ///< Of the frames that this end sends.
};

/// Listens from construction to destruction, which ends the calls under way: their clients get
/// Error(peer_lost). No process may fork() after it has made a server or a client.
class RpcServer {
 public:
  using Handler = std::function<void(std::unique_ptr<RpcCall>)>;

  /// `address`: "host:0" (the kernel picks the port), or "unix" for a socket in the pass's folder.
  /// `handler` is called on threads of the server and must not block or throw.
  RpcServer(const std::string& address, const cluster::Pass& pass, Handler handler,
            const RpcOptions& options = {});
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// What an RpcClient is given to reach this server.
  std::string address() const;

  /// Another limit for messages that begin from now on. Any thread.
  void allow(std::size_t max_message_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Messages of up to so many bytes are small: as one message each they are quicker than as streams.
inline constexpr std::size_t kSmallMessage = 2 << 20;
inline constexpr std::size_t kReplyOfAnySize = std::numeric_limits<std::size_t>::max();

/// A connection to an RpcServer, made by the first call and made anew by the first one after it was
/// lost. Any thread may use it; several calls may be under way.
class RpcClient {
 public:
  /// A call under way. Destroying it cancels the call.
  class Pending {
   public:
    virtual ~Pending() = default;
    /// Whether wait() would return or throw at once.
    virtual bool done() = 0;
    /// The reply; it is kept by the call. Throws what the server failed with, Error(timeout) when
    /// the call's deadline has passed, Error(peer_lost) when the server cannot be reached.
    virtual Bytes& wait() = 0;
  };

  /// `self` is who this end is in the run.
  RpcClient(const std::string& address, const cluster::Pass& pass, const cluster::Member& self,
            const RpcOptions& options = {});
  ~RpcClient();
  RpcClient(const RpcClient&) = delete;
  RpcClient& operator=(const RpcClient&) = delete;

  /// Makes the connection now, for callers whose calls must not wait for a slow server. A server
  /// that cannot be reached is the first call's trouble.
  void connect(Deadline deadline);

  /// Waits for nobody but, where there is no connection, for the server to prove itself. The parts
  /// must stay unchanged until the call is done. `reply_bytes`: no more than so many will come back.
  /// Where that is known, and both messages are small, the call is quicker; a reply that turns out to
  /// be larger comes all the same, up to this end's limit and that of one frame. A reply that is known
  /// to be larger than the limit may be as large as was said.
  std::unique_ptr<Pending> start(const MessageParts& parts, Deadline deadline,
                                 std::size_t reply_bytes = kReplyOfAnySize);
  Bytes call(const MessageParts& parts, Deadline deadline,
             std::size_t reply_bytes = kReplyOfAnySize);

  /// Of all messages and frame headers so far.
  Traffic traffic() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cohort::rpc
