#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cohort::chaos {

/// A task as tasks.json lists it.
struct SeenTask {
  std::string role;  ///< See cluster/task_name.h.
  int number = 0;
  pid_t pid = 0;
  std::optional<int> rank = {};  ///< Of workers that are in the group.
};

/// A line of history.jsonl that tells of a loss.
struct SeenLoss {
  std::string role;
  int number = 0;
  pid_t pid = 0;
  std::string cause;
  std::size_t line = 0;  ///< Which of the history's lines it is.
};

/// One that tells of a task whose work was done.
struct SeenEnd {
  std::string role;
  int number = 0;
  pid_t pid = 0;
};

/// One that tells of a new group of workers.
struct SeenGroup {
  std::int64_t group = 0;
  std::int64_t step = 0;  ///< What it goes on from; -1: it begins.
  std::size_t line = 0;
};

/// What can be seen from outside of a run that goes on in a folder: the files that docs/failures.md
/// promises to users, and nothing else.
///
///   file             read by refresh()       tells
///   tasks.json       whole                   who runs now, with pid and rank
///   metrics.jsonl    its last 4 KiB          the last step
///   history.jsonl    what was added          losses, ends, groups, in their order
///
/// Checkpoints and the summary are looked at when they are asked for. Files are written by
/// processes that may die while they write, so half a line is no line yet, and half a document is
/// as if it were not there: what was read before stays. No thread of its own; used by one.
class RunWatch {
 public:
  explicit RunWatch(std::filesystem::path run_dir) : run_dir_(std::move(run_dir)) {}

  /// Reads what has changed. Lines of the history are read once; metrics.jsonl may also have become
  /// shorter since.
  void refresh();

  const std::vector<SeenTask>& tasks() const { return tasks_; }
  /// The last step metrics.jsonl tells of; 0 where it tells of none.
  std::int64_t step() const { return step_; }

  std::size_t history_lines() const { return lines_; }
  const std::vector<SeenLoss>& losses() const { return losses_; }
  const std::vector<SeenEnd>& ends() const { return ends_; }
  /// The first group that came after that line of the history.
  std::optional<SeenGroup> group_after(std::size_t line) const;

  /// The step of the newest checkpoint; -1 where there is none.
  std::int64_t checkpoint_step() const;

  /// summary.json; null where there is none yet.
  nlohmann::json summary() const;

 private:
  void read_tasks();
  void read_step();
  void read_history();
  void take_line(const std::string& text);

  std::filesystem::path run_dir_;
  std::vector<SeenTask> tasks_;
  std::int64_t step_ = 0;
  // Of the history: the bytes and the lines that were read, all of them whole.
  std::size_t read_bytes_ = 0;
  std::size_t lines_ = 0;
  std::vector<SeenLoss> losses_;
  std::vector<SeenEnd> ends_;
  std::vector<SeenGroup> groups_;
};

/// All steps that metrics.jsonl tells of, in the order of its lines; validations are left out.
std::vector<std::int64_t> logged_steps(const std::filesystem::path& run_dir);

/// The last KiB of every log of a run, for a report.
std::string log_tails(const std::filesystem::path& run_dir);

}  // namespace cohort::chaos
