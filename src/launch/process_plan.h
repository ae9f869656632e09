#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort {

/// Where a worker runs among those of its host.
struct LocalPlace {
  int local_rank = 0;
  int local_workers = 1;
};

/// Which tasks a process runs: one worker (by its number), one server, or all of them as threads
/// (in-graph replication).
struct ProcessPlan {
  std::vector<int> ranks = {};
  std::vector<int> servers = {};
  int world = 1;                ///< Of the group; of workers that can change groups, the first.
  std::int64_t epoch = 1;       ///< The group a worker waits for first, or a server serves.
  bool remote = false;          ///< Other ranks have launchers of their own.
  std::string failpoints = {};  ///< See set_failpoints.
  LocalPlace place = {};  ///< Of the process among those of its host; found out where `remote`.
};

}  // namespace cohort
