#include "train/run_folder.h"

#include <fmt/chrono.h>
#include <sys/file.h>
#include <torch/version.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/command_line.h"
#include "base/fail.h"
#include "base/files.h"
#include "cluster/host_id.h"
#include "cluster/shared_wait.h"
#include "job/job_file.h"
#include "kernel/kernel_report.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void make_folder(const fs::path& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) fail_errno("cannot make the folder " + path.string(), problem.value());
}

fs::path fresh_name(const std::string& job_name) {
  const std::string stem =
      fmt::format("{}-{:%Y%m%d-%H%M%S}", job_name, fmt::localtime(std::time(nullptr)));
  fs::path path = fs::path("runs") / stem;
  for (int again = 2; fs::exists(path); ++again) {
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

/// Held until this process and all that it forks have ended: two runs in one folder would remove
/// each other's checkpoints.
UniqueFd lock_folder(const fs::path& path) {
  const fs::path file = path / ".lock";
  UniqueFd lock = open_to_write(file, Existing::append);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  fail(ErrorCode::invalid, "a run still goes on in {}; wait until it has ended", path.string());
}

std::string environment_json(const Job& job, int threads) {
  const auto or_null = [](int value) { return value == 0 ? Json() : Json(value); };
  return Json{
      {"argv", command_line()},
      {"seed", job.seed},
      {"host", host_name()},
      {"cpu", this_cpu().name},
      {"cores", usable_cores()},
      {"threads_per_worker", or_null(threads)},
      {"kernels", to_json(kernel_report(threads))},
      {"versions",
       {{"cohort", COHORT_VERSION}, {"libtorch", TORCH_VERSION}, {"compiler", __VERSION__}}}}
      .dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json staleness_json(const std::optional<StalenessSummary>& staleness) {
  if (!staleness) return nullptr;
  Json histogram = Json::object();
  for (const auto& [value, pushes] : staleness->histogram) {
    histogram[std::to_string(value)] = pushes;
  }
  return {{"mean", staleness->mean},       {"max", staleness->max},
          {"histogram", histogram},        {"applied", staleness->applied},
          {"dropped", staleness->dropped}, {"duplicates", staleness->duplicates},
          {"missing", staleness->missing}};
}

Json shards_json(const std::vector<ShardSummary>& shards) {
  if (shards.empty()) return nullptr;
  Json all = Json::array();
  for (const ShardSummary& shard : shards) {
    all.push_back({{"server", shard.server},
                   {"version", shard.version},
                   {"applied", shard.applied},
                   {"dropped", shard.dropped},
                   {"duplicates", shard.duplicates},
                   {"missing", shard.missing},
                   {"fingerprint", fmt::format("{:016x}", shard.fingerprint)}});
  }
  return all;
}

}  // namespace

RunFolder::RunFolder(const Job& job, const std::string& wanted, bool goes_on, int threads)
    : path_(wanted.empty() ? fresh_name(job.name) : fs::path(wanted)) {
  if (!goes_on) check_free(path_);
  make_folder(path_ / "logs");
  lock_ = lock_folder(path_);
  write_file_atomically(path_ / "config.toml", to_toml(job));
  write_file_atomically(path_ / "env.json", environment_json(job, threads) + "\n");
}

std::string to_json(const Summary& summary) {
  Json tasks = Json::array();
  for (const TaskSummary& task : summary.tasks) {
    tasks.push_back({{"role", task.role},
                     {"rank", task.rank},
                     {"host", task.host},
                     {"pid", task.pid},
                     {"peak_rss_bytes", task.peak_rss_bytes},
                     {"steps", or_null(task.steps)},
                     {"step_seconds", or_null(task.step_seconds)},
                     {"wait_seconds", or_null(task.wait_seconds)}});
  }
  return Json{{"status", summary.status},
              {"strategy", summary.strategy},
              {"engine", summary.engine},
              {"workers", summary.workers},
              {"servers", summary.servers},
              {"steps", summary.steps},
              {"epochs", summary.epochs},
              {"samples", summary.samples},
              {"seconds", summary.seconds},
              {"samples_per_second", or_null(summary.samples_per_second)},
              {"loss", or_null(summary.loss)},
              {"accuracy", or_null(summary.accuracy)},
              {"bytes_sent", summary.bytes_sent},
              {"bytes_received", summary.bytes_received},
              {"restarts", summary.restarts},
              {"failures", summary.failures},
              {"staleness", staleness_json(summary.staleness)},
              {"shards", shards_json(summary.shards)},
              {"phase_seconds", summary.phase_seconds},
              {"tasks", tasks}}
             .dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace cohort
