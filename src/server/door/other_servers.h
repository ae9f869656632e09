#pragma once

#include <memory>
#include <vector>

#include "cluster/store.h"
#include "rpc/rpc.h"
#include "server/door/run_server.h"

namespace cohort {

/// Server 0's way to the other servers of the run, to learn what a lost worker has pushed to them.
///
/// A worker pushes to one server after the other and may be killed on the way. By gRPC another
/// server may have got the push while server 0 has not, and would have it twice if the worker's
/// pieces were handed out again. So server 0 asks before it hands them out. For the one who is
/// asked the worker has left from then on: what was sent and comes later is refused. So the answer
/// stays true.
class OtherServers {
 public:
  /// Finds them through the store when they are asked first.
  OtherServers(const ServerOptions& options, Store& store) : options_(options), store_(store) {}

  /// The number of the newest push of this worker that any of them has. Throws Error naming the
  /// server that does not answer.
  std::uint64_t newest_push(int worker);

 private:
  void connect();

  const ServerOptions& options_;
  Store& store_;
  std::vector<std::unique_ptr<RpcClient>> clients_;  // Of the servers 1, 2, …
};

}  // namespace cohort
