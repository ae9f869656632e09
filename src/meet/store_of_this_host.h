#pragma once

#include <optional>

#include "base/deadline.h"
#include "cluster/pass.h"
#include "cluster/socket_store.h"
#include "os/cores.h"

namespace cohort::meet {

/// Which of the ranks that share this host this one is. Launchers started one by one do not know of
/// each other, so the ranks find out: all of them call it, each with its own connection.
os::LocalPlace local_place(cluster::Store& store, int rank, int world, Deadline deadline);

/// Over which the tasks of this host hand each other memory where the run's own store is on another
/// one, or can be reached by other hosts: the first rank of every host serves it, in the folder of
/// the run. Servers are on the host of rank 0, and meet there.
class StoreOfThisHost {
 public:
  StoreOfThisHost(cluster::Store& all, bool serves, const cluster::Member& self, Deadline deadline);

  cluster::Store& store() { return *joined_; }

 private:
  std::optional<cluster::StoreServer> server_;
  std::optional<cluster::SocketStore> client_;
  std::optional<cluster::HostStore> joined_;
};

}  // namespace cohort::meet
