#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "os/child_processes.h"

namespace cohort {

/// `cohort train` in a process of its own, by the program that runs this one. It is killed with its
/// owner, and its tasks with it.
class TrainingProcess {
 public:
  /// `words` follow `cohort train`; what it says goes to `log`. `environment` has NAME=VALUE for
  /// what it has besides this program's.
  TrainingProcess(const std::vector<std::string>& words, const std::filesystem::path& log,
                  const std::vector<std::string>& environment = {});

  pid_t pid() const { return process_.pid(0); }

  /// Once it has ended: what it exited with, or 128 and the number of the signal that killed it.
  std::optional<int> exit_code();

  void signal(int signal) { process_.signal(0, signal); }

 private:
  ChildProcesses process_;
  std::optional<int> exit_code_;
};

}  // namespace cohort
