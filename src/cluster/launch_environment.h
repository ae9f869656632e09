#pragma once

#include <optional>
#include <string>

#include "cluster/pass.h"
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
///   COHORT_SECRET_FILE             the run's secret; required between hosts
///   COHORT_INSECURE                1: what goes between hosts may be seen there
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

  /// All ranks are known to be on this host: their number says so, or the address of rank 0 is one
  /// that no other host can reach.
  bool one_host = false;

  std::string secret_file = {};  ///< Empty: the user's own secret of this host.
  bool insecure = false;
};

/// Nothing where neither RANK nor WORLD_SIZE is set: this process starts the run itself. Throws
/// Error(invalid) naming the variable where only a part is set, or a number makes no sense.
std::optional<LaunchEnvironment> launch_environment(const os::GetVariable& get);

/// Throws Error(invalid), saying what to do, where the run goes between hosts and nobody has said
/// that this may be seen there, or there is no secret that all hosts know.
void check_trust(const LaunchEnvironment& environment);

/// With which the ranks of such a run meet: the secret in the file named, or one that follows from
/// the user's own on this host and the name of the run; and a folder of this run among the user's.
/// Nothing of it is told by one rank to another.
Pass pass_of(const LaunchEnvironment& environment);

}  // namespace cohort::cluster
