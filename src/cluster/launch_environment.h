#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/pass.h"
#include "os/this_process.h"

namespace cohort::cluster {

/// The place of this process in a run that somebody else started. Cohort's own launcher does not use
/// these variables: the workers it forks know their places. Of several launchers whose variables are
/// set (torchrun within srun, say) the first of these counts, since it is the inner one:
///
///                  torchrun, or by hand  mpirun (Open MPI)           mpiexec (MPICH)   srun
///   the rank       RANK                  OMPI_COMM_WORLD_RANK        PMI_RANK          SLURM_PROCID
///   of how many    WORLD_SIZE            OMPI_COMM_WORLD_SIZE        PMI_SIZE          SLURM_STEP_NUM_TASKS
///   on this host   LOCAL_RANK            OMPI_COMM_WORLD_LOCAL_RANK  MPI_LOCALRANKID   SLURM_LOCALID
///   of how many    LOCAL_WORLD_SIZE      OMPI_COMM_WORLD_LOCAL_SIZE  MPI_LOCALNRANKS   (one node: all)
///   the run        TORCHELASTIC_RUN_ID   PMIX_NAMESPACE              PMI_JOBID         SLURM_JOB_ID, _STEP_ID
///
/// Where they meet: COHORT_ADDRESS=host:port, or MASTER_ADDR and MASTER_PORT. Ranks that are known to
/// be all on one host, of a launcher that names the run, need neither.
///
///   TORCHELASTIC_…                 set by torchrun: its store, its run and restart
///   COHORT_SECRET_FILE             the run's secret; required between hosts
///   COHORT_INSECURE                1: what goes between hosts may be seen there
struct LaunchEnvironment {
  int rank = 0;
  int world = 1;
  /// As given, and checked. Which ranks really share a host they find out by hosts_of_ranks().
  int local_rank = 0;
  int local_world = 1;
  std::string master_host = {};  ///< Empty where the ranks meet by the name of their run.
  int master_port = 0;

  /// Set by torchrun where its agent already listens on the master port: then that is a c10d store,
  /// through which the ranks tell each other where theirs is.
  bool agent_store = false;

  /// Of the run and its restart, so that no rank reads what an older one left.
  std::string incarnation = {};

  /// All ranks are known to be on this host: their number says so, or the address of rank 0 is one
  /// that no other host can reach.
  bool one_host = false;

  std::string secret_file = {};  ///< Empty: the user's own secret of this host.
  bool insecure = false;
};

/// The names of all variables that are read.
std::vector<const char*> launch_variables();

/// Nothing where no launcher has set its variables, or one of MPI or Slurm has started this process
/// alone: it starts the run itself. Throws Error(invalid) naming the variable where only a part is
/// set, or a number makes no sense.
std::optional<LaunchEnvironment> launch_environment(const os::GetVariable& get);

/// Throws Error(invalid), saying what to do, where the run goes between hosts and nobody has said
/// that this may be seen there, or there is no secret that all hosts know.
void check_trust(const LaunchEnvironment& environment);

/// With which the ranks of such a run meet: a secret that follows from the name of the run and from
/// the file named, or from the user's own secret on this host; and a folder of this run among the
/// user's. Nothing of it is told by one rank to another.
Pass pass_of(const LaunchEnvironment& environment);

}  // namespace cohort::cluster
