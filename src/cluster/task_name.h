#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace cohort::cluster {

/// What the tasks of a run are called, wherever one is named: in sentences, in names of files, in
/// planted faults, and in the files of a run that other programs read. A task is one worker or one
/// server; it is known by its role and its number among those of that role, which it keeps in all
/// groups. (The chief is a worker, too: who it is changes from group to group.)

/// The roles, as they stand in files: other programs rely on them, and they stay as they are.
inline constexpr const char* kWorkerRole = "worker";
inline constexpr const char* kServerRole = "server";

/// "worker 3" in sentences; with another `separator`, "worker-3", in names of files and in planted
/// faults.
inline std::string task_name(std::string_view role, int number, char separator = ' ') {
  return fmt::format("{}{}{}", role, separator, number);
}

}  // namespace cohort::cluster
