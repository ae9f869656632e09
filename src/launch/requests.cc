#include "launch/requests.h"

#include <signal.h>
#include <unistd.h>

#include <limits>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "base/files.h"
#include "base/integers.h"
#include "base/json.h"
#include "base/log.h"

namespace cohort::launch {
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

// Two ways lead to a launcher from outside. Signals ask it to stop, and SIGCHLD only wakes it: what
// has ended is found by whoever reaps. And two files in the run folder are a question and its
// answer, so that `cohort scale` needs no connection and no rights but those to the folder:
//
//   control/workers    written by who asks, read and removed by the launcher
//   control/answer     a sentence, written by the launcher, read by who asked
//
// Each is replaced as a whole, so none is ever read half-written. What stands in them may have been
// written by anybody who can write there: it is short, it is a number, or it is refused.
UserRequests::UserRequests(fs::path run_dir) : run_dir_(std::move(run_dir)) {
  if (run_dir_.empty()) return;
  fs::create_directories(run_dir_ / "control");
  fs::remove(request_path(run_dir_));  // Of a run that went on here before.
}

std::optional<RunRequest> UserRequests::wait(std::chrono::milliseconds at_most) {
  if (const auto signal = signals_.wait(at_most); signal && *signal != SIGCHLD) {
    return RunRequest{.kind = RunRequest::Kind::stop, .signal = *signal};
  }
  try {
    return asked_workers();
  } catch (const std::exception& error) {
    log_warn("the number of workers was not changed: {}", error.what());
    return std::nullopt;
  }
}

std::optional<RunRequest> UserRequests::asked_workers() {
  if (run_dir_.empty() || ::access(request_path(run_dir_).c_str(), F_OK) != 0) return std::nullopt;
  const std::string text = read_own(request_path(run_dir_));
  fs::remove(request_path(run_dir_));
  const auto workers = parse_integer(text, 0, std::numeric_limits<int>::max()).value_or(0);
  return RunRequest{.kind = RunRequest::Kind::workers, .workers = static_cast<int>(workers)};
}

void UserRequests::answer(const std::string& text) {
  try {
    write_file_atomically(answer_path(run_dir_), text, Sync::no);
  } catch (const Error& error) {
    log_warn("{}", error.what());  // A full disk must not end the run.
  }
}

// In another process than the launcher. An old answer goes before the question comes, so the one
// that is found is to this question. It is taken back where nobody is there to answer: a run that
// goes on in this folder later must not find it.
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

}  // namespace cohort::launch
