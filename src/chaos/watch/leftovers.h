#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace cohort::chaos {

/// What a training leaves behind on the machine. All of it is read from /proc, so it needs no help
/// of the training, and processes of other users that may not be looked at are as if they held
/// nothing.

/// Things of the machine that processes of a run have held and that must be gone with them: ports
/// that are listened on, unix sockets, shared memory with and without a name. Noted while the
/// processes live, so that what other programs have is never taken for theirs.
///
///   what                    noted by                     still there when
///   TCP port                the inode of its socket      /proc/net/tcp, tcp6 list it as listening
///   unix socket             the same, or by the name     /proc/net/unix lists it
///                           "@cohort-PID-…" it begins with
///   shared memory, named    its path in /dev/shm         the file exists
///   memory without a name   device and inode             any process has it open or mapped
class Belongings {
 public:
  /// What these processes hold now, in addition to what was noted before. Those that have ended
  /// hold nothing.
  void note(const std::set<pid_t>& processes);

  /// A line for each that is still there.
  std::vector<std::string> left() const;

 private:
  std::set<pid_t> processes_;
  std::set<std::string> sockets_;  // By their inodes.
  std::set<std::string> segments_;
  // Memory that processes share without a name in any folder (memfd, shared anonymous memory): from
  // what the kernel calls it, "device inode", to its name for people.
  std::map<std::string, std::string> memory_;
};

/// The children of a process; of this one also those it has inherited, see adopt_orphans().
std::vector<pid_t> child_processes(pid_t parent);

/// From now on, descendants of this process whose parent has ended become its children, so that
/// none can get away unseen. Throws Error where the kernel refuses.
void adopt_orphans();

}  // namespace cohort::chaos
