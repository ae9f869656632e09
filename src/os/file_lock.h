#pragma once

#include <filesystem>
#include <functional>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace cohort {

/// Held by one object at a time, of whichever process; the kernel takes it back from one that dies.
class FileLock {
 public:
  /// Locks `file`, an empty one that stays behind. Waits for whoever holds it; throws an Error that
  /// names the file: timeout where that takes too long, cancelled where `give_up` returns true
  /// meanwhile.
  FileLock(const std::filesystem::path& file, Deadline deadline,
           const std::function<bool()>& give_up = {});

 private:
  UniqueFd fd_;
};

}  // namespace cohort
