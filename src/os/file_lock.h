#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace cohort::os {

/// A lock held by one object at a time, of whichever process of this host: one writer of a folder
/// after the other. It binds only those who ask for it (flock). Another object of the same process
/// counts as another holder.
///
/// A process forked meanwhile, by whichever thread, has the lock too; one that it starts with exec()
/// has not. Where the object is destroyed in the process that made it, the lock is free for
/// others, whatever children there are. Where that process was killed it is free once its children
/// have ended as well, because they could still write.
class FileLock {
 public:
  /// Locks `file`, an empty one that stays behind. Waits for whoever holds it; throws an Error that
  /// names the file: timeout where that takes too long, cancelled where `give_up` returns true
  /// meanwhile.
  FileLock(const std::filesystem::path& file, Deadline deadline,
           const std::function<bool()>& give_up = {});
  FileLock(FileLock&&) noexcept = default;
  ~FileLock();

 private:
  UniqueFd fd_;  // The lock goes with the last descriptor of it, of any process.
  pid_t maker_;
};

}  // namespace cohort::os
