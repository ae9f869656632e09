#pragma once

#include <sys/types.h>

#include <vector>

#include "base/unique_fd.h"

namespace cohort {

/// Knows whether the processes behind the ranks of this host still run, without their help: the
/// kernel tells (pidfd). A dead process is seen at once, also before its parent has reaped it.
/// Ranks that are threads of this process have this process's id and never count as dead.
class PeerWatch {
 public:
  PeerWatch() = default;

  /// `pids[rank]`; all of this host.
  explicit PeerWatch(const std::vector<pid_t>& pids);

  /// All ranks whose process has ended, lowest first. Costs a system call. (There is no "first dead
  /// rank": whoever may forgive one death, of a rank that had done its part, must see the others.)
  std::vector<int> dead_ranks() const;
  bool is_dead(int rank) const;

 private:
  std::vector<UniqueFd> pidfds_;
};

}  // namespace cohort
