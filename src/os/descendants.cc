#include "os/descendants.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "os/peer_watch.h"

namespace cohort::os {
namespace {

/// Of all threads: orphans are given to any of them.
std::vector<pid_t> own_children() {
  std::vector<pid_t> all;
  std::error_code problem;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", problem)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t pid = 0; children >> pid;) all.push_back(pid);
  }
  return all;
}

/// Reaps a child that was killed.
bool reap_before(pid_t pid, Deadline deadline) {
  const UniqueFd process = open_pidfd(pid);
  pollfd ended{process.get(), POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  if (process) ::poll(&ended, 1, static_cast<int>(left.count()));
  return ::waitpid(pid, nullptr, WNOHANG) != 0;
}

}  // namespace

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

// An own child that has ended stands in the way of orphans behind it; whoever waits for it takes it
// away, and what it left is looked at the next time.
void reap_orphans(const std::function<bool(pid_t)>& is_own) {
  for (;;) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (ended.si_pid == 0 || is_own(ended.si_pid)) return;
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

// Who is killed leaves its children to this process, so that each round finds those one generation
// further down. All of a round are killed before one is waited for, or a child could be made anew
// meanwhile by another one.
bool end_descendants(Deadline deadline) {
  for (auto children = own_children(); !children.empty(); children = own_children()) {
    for (const pid_t pid : children) ::kill(pid, SIGKILL);
    for (const pid_t pid : children) {
      if (!reap_before(pid, deadline)) return false;
    }
  }
  return true;
}

}  // namespace cohort::os
