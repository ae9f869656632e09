#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "chaos/watch/held_memory.h"

namespace cohort {

/// Things of the machine that processes of a run have held and that must be gone with them: ports
/// that are listened on, unix sockets, shared memory with and without a name. Noted while the
/// processes live, so that what other programs have is never taken for theirs.
class Belongings {
 public:
  /// What these processes hold now. Those that have ended hold nothing.
  void note(const std::set<pid_t>& processes);

  /// A line for each that is still there.
  std::vector<std::string> left() const;

 private:
  std::set<pid_t> processes_;
  std::set<std::string> sockets_;  // By their inodes.
  std::set<std::string> segments_;
  HeldMemory memory_;
};

/// The children of a process; of this one also those it has inherited, see adopt_orphans().
std::vector<pid_t> child_processes(pid_t parent);

/// From now on, descendants of this process whose parent has ended become its children, so that
/// none can get away unseen.
void adopt_orphans();

}  // namespace cohort
