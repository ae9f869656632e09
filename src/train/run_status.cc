#include "train/run_status.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fail.h"
#include "base/files.h"
#include "base/log.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

fs::path request_path(const fs::path& run_dir) {
  return run_dir / "control" / "workers";
}

fs::path answer_path(const fs::path& run_dir) {
  return run_dir / "control" / "answer";
}

/// Of the launcher, as tasks.json says.
pid_t launcher_of(const fs::path& run_dir) {
  try {
    return nlohmann::json::parse(read_file(run_dir / "tasks.json")).at("launcher").get<pid_t>();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::corrupt, "{} is not what a running run writes",
         (run_dir / "tasks.json").string());
  }
}

}  // namespace

RunStatus::RunStatus(fs::path run_dir) : run_dir_(std::move(run_dir)) {
  if (run_dir_.empty()) return;
  fs::create_directories(run_dir_ / "control");
  fs::remove(request_path(run_dir_));  // Of a run that went on here before.
}

void RunStatus::write_tasks(const View& view, const std::vector<Task>& tasks) {
  if (run_dir_.empty()) return;
  auto list = nlohmann::ordered_json::array();
  for (const Task& task : tasks) {
    nlohmann::ordered_json entry{{"role", task.role}, {"number", task.number}, {"pid", task.pid}};
    entry["rank"] = task.rank ? nlohmann::ordered_json(*task.rank) : nullptr;
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json all{
      {"launcher", ::getpid()}, {"group", view.epoch}, {"workers", view.world()}, {"tasks", list}};
  try {
    write_file_atomically(run_dir_ / "tasks.json", all.dump(2));
  } catch (const Error& error) {
    log_warn("{}", error.what());  // A full disk must not end a run that only wants to tell of it.
  }
}

void RunStatus::happened(const std::string& event, nlohmann::json details) {
  if (run_dir_.empty()) return;
  nlohmann::ordered_json line{{"seconds", seconds_since(start_)}, {"event", event}};
  for (const auto& [key, value] : details.items()) line[key] = value;
  std::ofstream(run_dir_ / "history.jsonl", std::ios::app) << line.dump() << "\n";
}

std::optional<int> RunStatus::asked_workers() {
  if (run_dir_.empty() || ::access(request_path(run_dir_).c_str(), F_OK) != 0) return std::nullopt;
  const std::string text = read_file(request_path(run_dir_));
  fs::remove(request_path(run_dir_));
  int workers = 0;
  std::from_chars(text.data(), text.data() + text.size(), workers);
  return workers;
}

void RunStatus::answer(const std::string& text) {
  write_file_atomically(answer_path(run_dir_), text);
}

std::string ask_for_workers(const fs::path& run_dir, int workers, Deadline deadline) {
  if (!fs::exists(run_dir / "tasks.json")) {
    fail(ErrorCode::not_found, "{} is not the folder of a run: it has no tasks.json",
         run_dir.string());
  }
  const pid_t launcher = launcher_of(run_dir);
  fs::remove(answer_path(run_dir));
  write_file_atomically(request_path(run_dir), std::to_string(workers));
  while (!fs::exists(answer_path(run_dir))) {
    if (::kill(launcher, 0) != 0) {
      fs::remove(request_path(run_dir));
      fail(ErrorCode::not_found, "the run in {} is over: its launcher, process {}, has ended",
           run_dir.string(), launcher);
    }
    if (deadline.passed()) {
      fs::remove(request_path(run_dir));
      fail(ErrorCode::timeout, "the run in {} did not answer; its launcher is process {}",
           run_dir.string(), launcher);
    }
    std::this_thread::sleep_for(20ms);
  }
  return read_file(answer_path(run_dir));
}

}  // namespace cohort
