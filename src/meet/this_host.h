#pragma once

#include <optional>
#include <vector>

#include "base/deadline.h"
#include "cluster/pass.h"
#include "cluster/socket_store.h"
#include "os/cores.h"

namespace cohort::meet {

/// Who of a run is on this host, what each has of its cores, and where they hand each other memory.
/// Ranks that were started one by one know nothing of each other, so they find it out, over the store
/// in which all ranks of the run meet.

/// Which of the ranks that share this host this one is. All ranks call it, each with its own
/// connection.
os::LocalPlace local_place(cluster::Store& store, int rank, int world, Deadline deadline);

/// What a rank has of its host.
///
/// Each may have been bound by whoever started it: to cores of its own (cohort run, mpirun
/// --bind-to core), to some that it shares with others (mpirun's sockets, Slurm's jobs, taskset, a
/// container) or to none. So they show each other what they may use, and those that may use the
/// same divide it:
///
///   may use     0 1 2 3      0 1 2 3      4 5 6 7      4 5        4 5
///   own share   0 1          2 3          4 5 6 7      4          5
struct HostShare {
  os::LocalPlace place;
  std::vector<int> cores;  ///< Its own; empty where there are fewer than ranks to divide them.
  int cores_of_all = 1;    ///< That all ranks of this host may use together.
};

/// What a rank may use, and its part of it: `all` has what every rank of the host may use, by local
/// rank.
HostShare share_among(const std::vector<std::vector<int>>& all, int local_rank);

/// All ranks call it, each with its own connection, before they bind themselves to anything.
HostShare find_host_share(cluster::Store& store, int rank, int world, Deadline deadline);

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
