#pragma once

#include <sys/types.h>

#include <optional>
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

  /// A rank whose process has ended, lowest first; nothing while all live. Costs a system call.
  std::optional<int> dead_rank() const;
  bool is_dead(int rank) const;

 private:
  std::vector<UniqueFd> pidfds_;
};

}  // namespace cohort
