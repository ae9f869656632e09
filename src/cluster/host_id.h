#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/store.h"

namespace cohort {

/// Equal in two processes exactly when they can share memory and see each other's process ids: the
/// same boot of the same machine, in the same process and network namespaces.
std::string host_id();

/// The host_id() of every rank; all ranks call it.
std::vector<std::string> hosts_of_ranks(Store& store, int rank, int world, Deadline deadline);

/// The machine's name, for logs.
std::string host_name();

}  // namespace cohort
