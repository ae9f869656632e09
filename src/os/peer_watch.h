#pragma once

#include <sys/types.h>

#include <vector>

#include "base/unique_fd.h"

namespace cohort::os {

/// A descriptor of a process (pidfd), of any parent: poll() reports it as readable once the process
/// has ended, also before anybody has reaped it, and it never comes to mean another process that
/// got the same number later. None, and errno, where there is no such process.
UniqueFd open_pidfd(pid_t pid);

/// Knows whether the processes behind the ranks of this host still run, without their help: the
/// kernel tells. It watches those it was made for from then on, so make it while all of them are
/// known to live. Ranks that are threads of this process have this process's id and never count as
/// dead. Any thread may ask. A frozen process (SIGSTOP) lives.
class PeerWatch {
 public:
  /// Watches nobody.
  PeerWatch() = default;

  /// `pids[rank]`; all of this host. Throws Error(peer_lost) about a rank whose process has ended
  /// already.
  explicit PeerWatch(const std::vector<pid_t>& pids);

  /// All ranks whose process has ended, lowest first. Costs a system call. (There is no "first dead
  /// rank": whoever may forgive one death, of a rank that had done its part, must see the others.)
  std::vector<int> dead_ranks() const;
  bool is_dead(int rank) const;

 private:
  std::vector<UniqueFd> pidfds_;  // By rank; none for ranks of this process.
};

}  // namespace cohort::os
