#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cluster/launch_environment.h"
#include "cluster/socket_store.h"

namespace cohort::meet {

/// Where the tasks of a run find each other: a store, whose server is in the launcher that started
/// the run, or has rank 0 of it; and the pass with which they meet there. On one host the store is a
/// socket in a folder that only this user can enter. Made by the launcher before it forks, so that
/// every process has secret and address; serve() starts the server's thread only after the first
/// forks, because threads do not survive them. Who connects earlier waits.
class Rendezvous {
 public:
  explicit Rendezvous(const std::optional<cluster::LaunchEnvironment>& environment);
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// In the launcher, once all workers are started.
  void serve();

  /// In a worker or server. Throws Error(timeout) where there is no server by then.
  std::unique_ptr<cluster::SocketStore> connect(const cluster::Member& self,
                                                Deadline deadline) const;

 private:
  std::string endpoint(Deadline deadline) const;

  std::optional<cluster::LaunchEnvironment> environment_;
  cluster::Pass pass_;
  std::optional<cluster::StoreServer> server_;  // Where it is in this process.
};

}  // namespace cohort::meet
