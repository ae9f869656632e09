#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/timeout.h"
#include "os/peer_watch.h"
#include "server/client/server_client.h"
#include "server/wire/wire.h"

namespace cohort {

/// Where a server is, as it says in the store.
struct ServerAddress {
  std::string host;  ///< Its host_id().
  std::int64_t pid = 0;
  std::string rpc;
  std::string door;  ///< The path of its door's memory.
};
std::string to_text(const ServerAddress& address);
ServerAddress server_address_from(const std::string& text);

/// Knows, where the server is on this host, whether its process still runs; otherwise it does not.
/// Throws Error(peer_lost) where it has ended already.
PeerWatch watch_server(const ServerAddress& address);

/// Throws Error(peer_lost) when it has ended.
void check_server(const PeerWatch& watch, const ServerAddress& address);

std::string server_key(int server);

/// Tells a server of this host who the worker is. The server waits for nobody else, so it is quick.
void greet_server(const std::string& rpc_address, const RequestHeader& from, const Hello& hello,
                  Deadline deadline);

/// A request to one server. The spans stay valid and unchanged until its answer was waited for.
struct LinkRequest {
  WireKind kind = WireKind::exchange;
  RequestHeader header;
  std::span<const std::byte> encoded = {};  ///< push, with compression.
  std::span<const RowsPushed> rows = {};
  std::span<const RowsWanted> wanted = {};
  std::span<const Claim> pieces = {};
};

struct LinkReply {
  ReplyHeader header;
  /// By gRPC: dense floats or an encoded message. Valid until the link's next request.
  std::span<const std::byte> pulled = {};
  bool in_place = false;  ///< What was pulled is where it belongs already.
};

struct LinkTraffic {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// A worker's way to one server: one request at a time. Errors name no server; that is the
/// caller's.
class ServerLink {
 public:
  virtual ~ServerLink() = default;

  /// Each has as much time as `timeout` says, and asks what time it is only where it has to wait.
  virtual void start(const LinkRequest& request, const Timeout& timeout) = 0;
  /// Wanted rows are where they were wanted.
  virtual LinkReply wait(const Timeout& timeout) = 0;
  virtual LinkTraffic traffic() const = 0;
};

struct RpcLinkOptions {
  ServerAddress address;
  int worker = 0;
  std::int64_t epoch = 0;
  std::span<const float> outgoing = {};  ///< The server's part of the floats that a push brings.
};
std::unique_ptr<ServerLink> make_rpc_link(const RpcLinkOptions& options, Deadline deadline);

/// `hello` lacks only the side memory, which is the link's.
struct MemoryLinkOptions {
  ServerAddress address;
  Hello hello;
  int worker = 0;
  std::int64_t epoch = 0;
  int servers = 1;  ///< Of the run; with the workers they share the cores.
  int cores = 1;
  std::size_t dense = 0;  ///< Of the server's part; for counting.
};
std::unique_ptr<ServerLink> make_memory_link(const MemoryLinkOptions& options, Deadline deadline);

}  // namespace cohort
