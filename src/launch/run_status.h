#pragma once

#include <cohort/train.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/view.h"

namespace cohort {

/// What others may know of a running run, in its folder: `tasks.json` (who runs now, written anew
/// at every change) and `history.jsonl` (a line for every loss, restart and group). Does nothing
/// without a folder. What others may ask of it: launch/requests.h.
class RunStatus {
 public:
  struct Task {
    std::string role;
    int number = 0;
    std::optional<int> rank = {};
    std::int64_t pid = 0;
  };

  explicit RunStatus(std::filesystem::path run_dir) : run_dir_(std::move(run_dir)) {}

  void write_tasks(const View& view, const std::vector<Task>& tasks);
  /// `event` with what else is to say of it; the time is added.
  void happened(const std::string& event, nlohmann::json details);

 private:
  std::filesystem::path run_dir_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace cohort
