#include "os/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/fail.h"

namespace cohort::os {

// There is no flock() with a deadline, so it is tried again and again.
FileLock::FileLock(const std::filesystem::path& file, Deadline deadline,
                   const std::function<bool()>& give_up)
    : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644)),
      maker_(::getpid()) {
  constexpr auto kPause = std::chrono::milliseconds(5);
  if (!fd_) fail_errno("cannot open " + file.string());
  while (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) fail_errno("cannot lock " + file.string());
    if (give_up && give_up()) {
      fail(ErrorCode::cancelled, "another writer has locked {}", file.string());
    }
    if (deadline.passed()) {
      fail(ErrorCode::timeout, "{} is still locked by another writer", file.string());
    }
    std::this_thread::sleep_for(kPause);
  }
}

// Said aloud, since a child that was forked meanwhile may have another descriptor of it.
FileLock::~FileLock() {
  if (fd_ && ::getpid() == maker_) ::flock(fd_.get(), LOCK_UN);
}

}  // namespace cohort::os
