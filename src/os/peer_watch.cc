#include "os/peer_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/fail.h"

namespace cohort::os {

namespace {

UniqueFd watch_process(pid_t pid, int rank) {
  UniqueFd fd = open_pidfd(pid);
  if (fd) return fd;
  if (errno != ESRCH) fail_errno(fmt::format("Cannot watch process {} of rank {}", pid, rank));
  throw Error(ErrorCode::peer_lost,
              fmt::format("Rank {} is lost: its process {} has already ended.", rank, pid))
      .about_rank(rank);
}

bool has_ended(const pollfd& entry) {
  return entry.revents != 0;
}

}  // namespace

// Debian 12's C library has no wrapper for this system call.
UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Processes are watched by descriptors (pidfd): a descriptor stays that process' for ever, where a
// number may soon be another's, and whether it has ended costs one poll() of all of them. This
// process itself is not watched: of ranks that are threads there is nothing to find out.
PeerWatch::PeerWatch(const std::vector<pid_t>& pids) {
  for (int rank = 0; rank < static_cast<int>(pids.size()); ++rank) {
    const pid_t pid = pids[static_cast<std::size_t>(rank)];
    pidfds_.push_back(pid == ::getpid() ? UniqueFd() : watch_process(pid, rank));
  }
}

std::vector<int> PeerWatch::dead_ranks() const {
  std::vector<pollfd> entries;
  for (const UniqueFd& fd : pidfds_) entries.push_back({fd.get(), POLLIN, 0});
  std::vector<int> dead;
  if (::poll(entries.data(), entries.size(), 0) <= 0) return dead;
  for (std::size_t rank = 0; rank < entries.size(); ++rank) {
    if (has_ended(entries[rank])) dead.push_back(static_cast<int>(rank));
  }
  return dead;
}

bool PeerWatch::is_dead(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= pidfds_.size() || !pidfds_[index]) return false;
  pollfd entry{pidfds_[index].get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0 && has_ended(entry);
}

}  // namespace cohort::os
