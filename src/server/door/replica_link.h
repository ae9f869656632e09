#pragma once

#include <memory>

#include "cluster/store.h"
#include "rpc/rpc.h"
#include "server/door/run_server.h"
#include "server/wire/replica_message.h"

namespace cohort {

/// Which server keeps a copy of this one's shard.
constexpr int keeper_of(int server, int servers) {
  return (server + 1) % servers;
}

/// A server's way to the one that keeps the copy of its shard.
class ReplicaLink {
 public:
  /// Finds the keeper through the store.
  ReplicaLink(const ServerOptions& options, Store& store);

  /// Returns when the keeper has it. Throws Error naming the keeper.
  void send(const ShardMemory& memory, ReplicaMessage::Kind kind);

 private:
  const int keeper_;
  const Duration timeout_;
  RequestHeader header_;
  std::unique_ptr<RpcClient> client_;
};

}  // namespace cohort
