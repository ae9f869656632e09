#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "os/child_processes.h"

namespace cohort::chaos {

/// `cohort train` in a process of its own, by the program that runs this one (/proc/self/exe). It
/// is killed with its owner, and its tasks with it. Unlike run_program() of os/ it does not wait:
/// whoever owns it asks now and then for the exit code, and may signal it meanwhile.
class TrainingProcess {
 public:
  /// `words` follow `cohort train`; what it says goes to `log`. `environment` has NAME=VALUE for
  /// what it has besides this program's.
  TrainingProcess(const std::vector<std::string>& words, const std::filesystem::path& log,
                  const std::vector<std::string>& environment = {});

  pid_t pid() const { return process_.pid(0); }

  /// Once it has ended: what it exited with, or 128 and the number of the signal that killed it.
  /// 127 where it could not be started.
  std::optional<int> exit_code();

  /// Sent only while it runs.
  void signal(int signal) { process_.signal(0, signal); }

 private:
  os::ChildProcesses process_;
  std::optional<int> exit_code_;
};

}  // namespace cohort::chaos
