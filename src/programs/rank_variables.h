#pragma once

#include <string>
#include <vector>

#include "os/this_process.h"
#include "programs/program_run.h"

namespace cohort::programs {

/// What a rank finds in its environment beside what this process has there: entries as
/// os::environment_with() takes them.

/// Which process of a run it is about.
struct RankPlace {
  int local_rank = 0;
  int restart = 0;  ///< How often all ranks were started before.
  int port = 0;     ///< Where they meet this time.
};

/// Its rank among all.
inline int rank_of(const ProgramRun& run, int local_rank) {
  return run.host * run.ranks_per_host + local_rank;
}

/// torchrun's variables (cluster/launch_environment.h has those that Cohort reads). What another
/// launcher around this one has said of a meeting point is taken out. So is
/// TORCHELASTIC_USE_AGENT_STORE: nobody listens on the port before rank 0 does.
std::vector<std::string> place_variables(const ProgramRun& run, const RankPlace& place);

/// With how many threads it computes, and with which kernels (kernel/fast_settings.h). Nothing that
/// the user has set, where OpenBLAS follows OpenMP's word in what it has none of its own for.
std::vector<std::string> compute_variables(int threads, const os::GetVariable& get);

}  // namespace cohort::programs
