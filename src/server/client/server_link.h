#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/traffic.h"
#include "cluster/store.h"
#include "server/wire/server_address.h"
#include "server/wire/wire.h"

namespace cohort::server {

/// A worker's way to one server: shared memory where both are on one host, or gRPC. Which of them
/// it is shows nowhere above; but for one thing: what is pulled comes in place, or as bytes
/// (Reply::in_place).

/// One request at a time: start(), then wait(), on one thread. What the request refers to stays
/// valid and unchanged until then. Errors name no server; that is the caller's.
class ServerLink {
 public:
  virtual ~ServerLink() = default;

  /// Each has as much time as `timeout` says, and asks what time it is only where it has to wait.
  /// By gRPC start() gives the request its number; in shared memory none comes twice.
  virtual void start(Request& request, const Timeout& timeout) = 0;
  /// Wanted rows are where they were wanted.
  virtual Reply wait(const Timeout& timeout) = 0;
  /// Of all messages so far; in shared memory, of what would have travelled.
  virtual Traffic traffic() const = 0;
};

struct RpcLinkOptions {
  ServerAddress address;
  cluster::Pass pass;
  int worker = 0;
  std::int64_t generation = 0;
  std::span<const float> outgoing = {};  ///< The server's part of the floats that a push brings.
};
std::unique_ptr<ServerLink> make_rpc_link(const RpcLinkOptions& options, Deadline deadline);

/// `hello` lacks only the numbers of the floats, and of the side memory, which is the link's. The
/// memory is handed over by the store.
struct MemoryLinkOptions {
  ServerAddress address;
  cluster::Store& store;
  const os::SharedMemory& floats;
  Hello hello;
  int server = 0;
  int worker = 0;
  std::int64_t generation = 0;
  int servers = 1;  ///< Of the run; with the workers they share the cores.
  int cores = 1;
  std::size_t dense = 0;  ///< Of the server's part; for counting.
};
std::unique_ptr<ServerLink> make_memory_link(const MemoryLinkOptions& options, Deadline deadline);

}  // namespace cohort::server
