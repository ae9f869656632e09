#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/deadline.h"
#include "cluster/server_report.h"
#include "cluster/store.h"
#include "cluster/work_board.h"
#include "rpc/rpc.h"
#include "server/shard/shard.h"

namespace cohort::server {

struct ServerOptions {
  int server = 0;
  ShardRules rules;
  /// Server 0, where work is handed out. What is left to do is rather what the memory says, or the
  /// first model, where they say anything.
  std::optional<cluster::WorkBoard::Options> board = {};
  std::int64_t generation = 0;  ///< Of the membership; messages of another one are refused.
  /// Where the shard and the board of work are kept: memory that outlives the server, zeroed at
  /// first, and made to agree (reconcile_shards) since the last server there. Empty: memory of the server.
  std::span<std::byte> memory = {};
  /// 2: this shard has a copy on the next server, brought up to date before a push is answered, and
  /// the copy of the server before is kept in `replica_memory`, as large as that one's memory.
  /// Needs `memory`, and more than one server.
  int replicas = 1;
  int servers = 1;  ///< Of the run.
  std::span<std::byte> replica_memory = {};
  /// Of the largest message that is taken, unless the memory, or the model once there is one, says
  /// that larger ones are needed.
  std::size_t message_bytes = rpc::kLeastMessageLimit;
  std::string address = "unix";        ///< Where to listen for gRPC; see RpcServer.
  int cores = 1;                       ///< That the local processes may use.
  Duration timeout;                    ///< For other servers to answer, and workers to appear,
  Duration appear = {};                ///< who have this long where it is more.
  std::function<bool()> give_up = {};  ///< Asked now and then; true ends the server.
};

/// A parameter server, from its appearance in the store until every worker has left, `give_up` says
/// that it shall end (the launcher forms another group), or another server is lost that it cannot
/// go on without: the one that keeps its copy, or one that server 0 asks what a lost worker has
/// pushed. What comes through its memory door and its gRPC door is decided by one thread, the
/// caller's.
cluster::ServerReport run_server(const ServerOptions& options, cluster::Store& store);

}  // namespace cohort::server
