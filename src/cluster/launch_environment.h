#pragma once

#include <optional>
#include <string>

#include "base/get_variable.h"

namespace cohort {

/// The place of this process in a run that somebody else started: torchrun, or a user who set the
/// same variables by hand on every host.
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

/// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and torchrun's
/// own variables. Nothing where neither RANK nor WORLD_SIZE is set: this process starts the run
/// itself. Throws Error(invalid) where only a part is set, or a number makes no sense.
std::optional<LaunchEnvironment> launch_environment(const GetVariable& get);

}  // namespace cohort
