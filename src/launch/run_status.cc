#include "launch/run_status.h"

#include <signal.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "base/fail.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/parse_integer.h"

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

/// What a run says of itself, or is asked, is short.
constexpr std::uint64_t kMostBytes = 16 << 20;

std::string read_own(const fs::path& path) {
  return read_file(path, Links::refuse, kMostBytes);
}

/// Of the launcher, as tasks.json says.
pid_t launcher_of(const fs::path& run_dir) {
  const fs::path path = run_dir / "tasks.json";
  const std::string text = read_own(path);
  try {
    constexpr std::int64_t kLargestPid = std::numeric_limits<pid_t>::max();
    return static_cast<pid_t>(integer_at(parse_json(text), "launcher", 1, kLargestPid));
  } catch (const Error& error) {
    fail(ErrorCode::corrupt, "{} is not what a running run writes: {}", path.string(),
         error.what());
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
    write_file_atomically(run_dir_ / "tasks.json", all.dump(2), Sync::no);
  } catch (const Error& error) {
    log_warn("{}", error.what());  // A full disk must not end a run that only wants to tell of it.
  }
}

void RunStatus::happened(const std::string& event, nlohmann::json details) {
  if (run_dir_.empty()) return;
  nlohmann::ordered_json line{{"seconds", seconds_since(start_)}, {"event", event}};
  for (const auto& [key, value] : details.items()) line[key] = value;
  const fs::path path = run_dir_ / "history.jsonl";
  try {
    const UniqueFd file = open_to_write(path, Existing::append);
    using Json = nlohmann::ordered_json;
    write_all(file.get(), line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", path);
  } catch (const Error& error) {
    log_warn("{}", error.what());  // As above.
  }
}

std::optional<int> RunStatus::asked_workers() {
  if (run_dir_.empty() || ::access(request_path(run_dir_).c_str(), F_OK) != 0) return std::nullopt;
  const std::string text = read_own(request_path(run_dir_));
  fs::remove(request_path(run_dir_));
  return static_cast<int>(parse_integer(text, 0, std::numeric_limits<int>::max()).value_or(0));
}

void RunStatus::answer(const std::string& text) {
  write_file_atomically(answer_path(run_dir_), text, Sync::no);
}

std::string ask_for_workers(const fs::path& run_dir, int workers, Deadline deadline) {
  if (!fs::exists(run_dir / "tasks.json")) {
    fail(ErrorCode::not_found, "{} is not the folder of a run: it has no tasks.json",
         run_dir.string());
  }
  const pid_t launcher = launcher_of(run_dir);
  fs::remove(answer_path(run_dir));
  write_file_atomically(request_path(run_dir), std::to_string(workers), Sync::no);
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
  return read_own(answer_path(run_dir));
}

}  // namespace cohort
