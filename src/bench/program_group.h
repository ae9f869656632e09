#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort::bench {

/// Programs that are measured: how they are run, and what becomes of them.
///
/// os/run_program.h runs one program and throws when it fails; here several run at the same time,
/// on cores of their own, what each prints is kept apart, and a failure is an answer, not an
/// exception: a peer that fails must not end the benchmark.

/// Variables by name; one without a value is taken out of the caller's.
using ProgramVariables = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// A program to run, and what its process gets different from the caller's own environment.
struct Program {
  std::vector<std::string>
      words;  ///< Its name (looked up in PATH if without slash), its arguments.
  ProgramVariables environment;
  int core = -1;  ///< The only core it may use; -1: all the caller may.
};

/// Programs that are started at the same time and talk to each other or not.
struct ProgramGroup {
  std::vector<Program> programs;
  bool private_network =
      false;  ///< A loopback of their own with TCP `reno`, where the machine allows it.
  double timeout_seconds = 120;
};

/// How programs that ran together ended.
struct Finished {
  bool succeeded = false;
  std::string problem;  ///< Where not: which ended how, with the last line of its errors.
  std::vector<std::string> outputs;  ///< Standard output of each.
  double started_at = 0;             ///< On the clock of seconds_now().
};

/// Starts all programs of the group and waits until the last has ended. One that fails, or the end
/// of the group's time, ends all of them with all they have started. Each is the leader of a
/// process group, which is killed at the end in any case, so that nothing runs on beside whoever is
/// measured next. Throws Error only where a program cannot be started for want of memory or
/// processes; one that does not exist is a failure like others.
Finished run_together(const ProgramGroup& group);

/// Whether a program of that name is in PATH.
bool in_path(const std::string& name);

}  // namespace cohort::bench
