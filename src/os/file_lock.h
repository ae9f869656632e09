#pragma once

#include <filesystem>
#include <functional>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace cohort::os {

/// A lock held by one object at a time, of whichever process of this host: one writer of a folder
/// after the other. The kernel takes it back from a process that dies, and from an object that is
/// destroyed. It binds only those who ask for it (flock). Another object of the same process
/// counts as another holder; a process forked meanwhile keeps the lock held until it ends, too.
class FileLock {
 public:
  /// Locks `file`, an empty one that stays behind. Waits for whoever holds it; throws an Error that
  /// names the file: timeout where that takes too long, cancelled where `give_up` returns true
  /// meanwhile.
  FileLock(const std::filesystem::path& file, Deadline deadline,
           const std::function<bool()>& give_up = {});

 private:
  UniqueFd fd_;  // Closing it releases the lock.
};

}  // namespace cohort::os
