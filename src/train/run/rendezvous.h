#pragma once

#include <memory>
#include <optional>

#include "cluster/launch_environment.h"
#include "cluster/store_server.h"
#include "cluster/tcp_store.h"

namespace cohort {

/// Where the workers of a run meet. Made by the launcher before it starts them: it holds the server
/// where this process is the one to hold it (it started the run, or has rank 0 of it).
class Rendezvous {
 public:
  explicit Rendezvous(const std::optional<LaunchEnvironment>& environment);

  /// In the launcher, once all workers are started.
  void serve();

  /// In a worker.
  std::unique_ptr<TcpStore> connect(Deadline deadline) const;

 private:
  std::optional<LaunchEnvironment> environment_;
  std::string host_;
  std::optional<StoreServer> server_;
};

}  // namespace cohort
