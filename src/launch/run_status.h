#pragma once

#include <cohort/train.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/membership.h"

namespace cohort::launch {

/// What other programs may know of a running run, in its folder: `tasks.json` (who runs now,
/// written anew at every change, so that a reader always finds a whole file) and `history.jsonl` (a
/// line for every loss, end, group and change of the number of workers, with the seconds since the
/// start). Does nothing without a folder; a write that fails is a warning, because a full disk must
/// not end a run that only wants to tell of itself. What others may ask of it: launch/requests.h.
/// For the launcher's thread.
class RunStatus {
 public:
  struct Task {
    std::string role;              ///< See cluster/task_name.h.
    int number = 0;                ///< Which it keeps in all groups.
    std::optional<int> rank = {};  ///< In the current group; none of servers and newcomers.
    std::int64_t pid = 0;
  };

  explicit RunStatus(std::filesystem::path run_dir) : run_dir_(std::move(run_dir)) {}

  /// `view`: the current group.
  void write_tasks(const cluster::View& view, const std::vector<Task>& tasks);
  /// `event` with what else is to say of it; the time is added.
  void happened(const std::string& event, nlohmann::json details);

 private:
  std::filesystem::path run_dir_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace cohort::launch
