#pragma once

#include <cohort/train.h>

#include <filesystem>
#include <optional>
#include <string>

#include "os/file_lock.h"

namespace cohort::training {

/// Throws Error(invalid) where a run still goes on in this folder, or where the folder of a run
/// belongs to another user. Before anything in it is read: a run removes its old checkpoints.
void check_nobody_runs_in(const std::filesystem::path& run_dir);

/// The folder a run leaves behind; docs/run-folder.md says what is in it. While it lives the folder
/// is locked, for this process and all that it forks: the lock goes with the last of them, also
/// when they are killed. Two runs in one folder would remove each other's checkpoints.
class RunFolder {
 public:
  /// Creates it: `wanted`, which must not exist or be empty (unless the run goes on there), or one
  /// under runs/ named after job and time. It is its owner's alone (0700), also where it is there
  /// already. Writes config.toml and env.json. Throws Error(invalid) where the folder is taken, by
  /// what is in it or by a run that still goes on there, or belongs to another user.
  /// `threads`: of each worker; 0 where nobody knows yet.
  RunFolder(const Job& job, const std::string& wanted, bool goes_on, int threads);

  /// As it was wanted: not made absolute.
  const std::filesystem::path& path() const { return path_; }
  /// Where the output of a task goes, which is called as in "worker-3".
  std::filesystem::path log_of(const std::string& task) const {
    return path_ / "logs" / (task + ".log");
  }

 private:
  std::filesystem::path path_;
  std::optional<os::FileLock> lock_;
};

}  // namespace cohort::training
