#pragma once

#include <vector>

#include "base/deadline.h"
#include "cluster/store.h"
#include "os/cores.h"

namespace cohort::meet {

/// A rank among those of its host that were started one by one and do not know of each other.
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

}  // namespace cohort::meet
