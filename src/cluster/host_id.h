#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/store.h"

namespace cohort::cluster {

/// Which processes are on the same host, in the sense that counts here: they can share memory by
/// descriptor and see each other's process ids. Two containers of one machine are two hosts.

/// Equal in two processes exactly when that holds: the same boot of the same machine, in the same
/// process and network namespaces. Opaque; throws Error where /proc cannot be read.
std::string host_id();

/// The host_id() of every rank. All ranks call it, each with its own connection to the store; it
/// waits for all of them, until the deadline.
std::vector<std::string> hosts_of_ranks(Store& store, int rank, int world, Deadline deadline);

/// The machine's name, for logs.
std::string host_name();

}  // namespace cohort::cluster
