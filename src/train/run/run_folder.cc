#include "train/run/run_folder.h"

#include <fmt/chrono.h>
#include <torch/version.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/deadline.h"
#include "base/fail.h"
#include "base/files.h"
#include "checkpoint/checkpoint_folder.h"
#include "cluster/host_id.h"
#include "job/job_file.h"
#include "kernel/kernel_report.h"
#include "os/shared_wait.h"
#include "os/this_process.h"

namespace cohort::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path fresh_name(const std::string& job_name) {
  const std::string stem =
      fmt::format("{}-{:%Y%m%d-%H%M%S}", job_name, fmt::localtime(std::time(nullptr)));
  create_folder("runs");
  fs::path path = fs::path("runs") / stem;
  // Others may look for a name in the same second: whose folder it is, the system decides.
  std::error_code problem;
  for (int again = 2; !fs::create_directory(path, problem) && !problem; ++again) {
    path = fs::path("runs") / fmt::format("{}-{}", stem, again);
  }
  return path;
}

void check_free(const fs::path& path) {
  std::error_code problem;
  if (!fs::exists(path, problem)) return;
  if (!fs::is_directory(path, problem)) {
    fail(ErrorCode::invalid, "the run folder {} exists and is not a folder", path.string());
  }
  if (!fs::is_empty(path, problem)) {
    fail(ErrorCode::invalid, "the run folder {} exists already; name another one or remove it",
         path.string());
  }
}

/// How long a lock is waited for: the tasks of a run that was killed a moment ago end one after the
/// other, with the folder's lock.
constexpr auto kLastBreath = std::chrono::seconds(3);

os::FileLock lock_folder(const fs::path& path) {
  try {
    return {path / ".lock", Deadline::in(kLastBreath)};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    fail(ErrorCode::invalid, "a run still goes on in {}; wait until it has ended", path.string());
  }
}

std::string environment_json(const Job& job, int threads) {
  const auto or_null = [](int value) { return value == 0 ? Json() : Json(value); };
  return Json{
      {"argv", os::command_line()},
      {"seed", job.seed},
      {"host", cluster::host_name()},
      {"cpu", kernel::this_cpu().name},
      {"cores", os::usable_cores()},
      {"threads_per_worker", or_null(threads)},
      {"kernels", kernel::to_json(kernel::kernel_report(threads))},
      {"versions",
       {{"cohort", COHORT_VERSION}, {"libtorch", TORCH_VERSION}, {"compiler", __VERSION__}}}}
      .dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

void check_nobody_runs_in(const fs::path& run_dir) {
  if (!fs::exists(run_dir / ".lock")) return;
  check_own_folder(run_dir);
  lock_folder(run_dir);
}

RunFolder::RunFolder(const Job& job, const std::string& wanted, bool goes_on, int threads)
    : path_(wanted.empty() ? fresh_name(job.name) : fs::path(wanted)) {
  if (!goes_on) check_free(path_);
  create_private_folder(path_);
  create_folder(path_ / "logs");
  lock_.emplace(lock_folder(path_));
  checkpoint::CheckpointFolder(path_ / "checkpoints", job.checkpoint.keep).remove_leftovers();
  write_file_atomically(path_ / "config.toml", job::to_toml(job));
  write_file_atomically(path_ / "env.json", environment_json(job, threads) + "\n");
}

}  // namespace cohort::training
