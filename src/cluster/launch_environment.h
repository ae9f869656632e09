#pragma once

#include <optional>
#include <string>

#include "os/this_process.h"

namespace cohort::cluster {

/// The place of this process in a run that somebody else started: torchrun, or a user who set the
/// same variables by hand on every host. Cohort's own launcher does not use these variables: the
/// workers it forks know their places.
///
///   RANK, WORLD_SIZE               required, if any of the two is set
///   MASTER_ADDR, MASTER_PORT       required: where rank 0 is, for all to find each other
///   LOCAL_RANK, LOCAL_WORLD_SIZE   0 and LOCAL_RANK + 1 where left out
///   TORCHELASTIC_…                 set by torchrun: its store, its run and restart
struct LaunchEnvironment {
  int rank = 0;
  int world = 1;
  /// As given, and checked. Which ranks really share a host they find out by hosts_of_ranks().
  int local_rank = 0;
  int local_world = 1;
  std::string master_host;
  int master_port = 0;

  /// Set by torchrun where its agent already listens on the master port: then that is a c10d store,
  /// through which the ranks tell each other where theirs is.
  bool agent_store = false;

  /// Different in every restart of the same run, so that no rank reads what an older one left.
  std::string incarnation;
};

/// Nothing where neither RANK nor WORLD_SIZE is set: this process starts the run itself. Throws
/// Error(invalid) naming the variable where only a part is set, or a number makes no sense.
std::optional<LaunchEnvironment> launch_environment(const os::GetVariable& get);

}  // namespace cohort::cluster
