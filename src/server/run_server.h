#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/deadline.h"
#include "cluster/store.h"
#include "cluster/work_board.h"
#include "server/shard.h"

namespace cohort {

struct ServerOptions {
  int server = 0;
  ShardRules rules;
  std::optional<WorkBoard::Options> board = {};  ///< Server 0, where work is handed out.
  std::string address = "unix";                  ///< Where to listen for gRPC; see RpcServer.
  int cores = 1;                                 ///< That the local processes may use.
  Duration timeout;                              ///< For workers to appear.
  std::function<bool()> give_up = {};            ///< Asked now and then; true ends the server.
};

struct ServerResult {
  PushCounts counts;
  std::uint64_t version = 0;
};

/// A parameter server, from its appearance in the store until every worker has left. What comes
/// through its memory door and its gRPC door is decided by one thread, the caller's.
ServerResult run_server(const ServerOptions& options, Store& store);

}  // namespace cohort
