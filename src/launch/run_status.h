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

/// What others may know of a running run, and ask of it, in its folder: `tasks.json` (who runs now,
/// written anew at every change), `history.jsonl` (a line for every loss, restart and group), and
/// `control/workers` (how many workers somebody wants; see ask_for_workers). Does nothing without a
/// folder.
class RunStatus {
 public:
  struct Task {
    std::string role;
    int number = 0;
    std::optional<int> rank = {};
    std::int64_t pid = 0;
  };

  explicit RunStatus(std::filesystem::path run_dir);

  void write_tasks(const View& view, const std::vector<Task>& tasks);
  /// `event` with what else is to say of it; the time is added.
  void happened(const std::string& event, nlohmann::json details);

  /// The number of workers somebody asked for since the last call. Answer it with answer().
  std::optional<int> asked_workers();
  void answer(const std::string& text);

 private:
  std::filesystem::path run_dir_;
  Clock::time_point start_ = Clock::now();
};

/// From another process: asks the launcher of the run in `run_dir` for so many workers, waits for
/// its answer and returns it. Throws Error where no run goes on there or it does not answer.
std::string ask_for_workers(const std::filesystem::path& run_dir, int workers, Deadline deadline);

}  // namespace cohort
