#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

/// A disk that keeps the checkpoints of a run waiting for as long as it is held: a library that is
/// loaded before all others into the run's processes (tests/slow_disk.cc) delays fsync below the
/// folder `checkpoints` while a file, the *gate*, exists.
class SlowDisk {
 public:
  /// Without a library it does nothing.
  SlowDisk(const std::filesystem::path& library, const std::filesystem::path& run_dir);
  ~SlowDisk() { release(); }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;

  /// What the run's environment needs.
  const std::vector<std::string>& environment() const { return environment_; }

  void hold();
  /// Since it is held, somebody has come to wait for the disk.
  bool keeps_waiting() const;
  void release() noexcept;

 private:
  std::filesystem::path gate_;
  std::vector<std::string> environment_;  // NAME=VALUE
};

}  // namespace cohort
