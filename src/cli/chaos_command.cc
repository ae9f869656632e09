#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>

#include "base/fail.h"
#include "chaos/chaos.h"
#include "cli/command.h"
#include "job/job_file.h"

namespace cohort::cli {
namespace {

constexpr const char* kChaosFooter = R"(Examples:
  cohort chaos examples/blobs.toml --set cluster.workers=3 --seed 7 --minutes 10
  cohort chaos job.toml --strategies allreduce,gossip --events 12
  cohort chaos job.toml --goodput --strategies allreduce --minutes 5

Strategies: allreduce, allreduce-ring, allreduce-gloo, server-sync, server-async, server-bounded,
server-k-of-n, averaging-sync, averaging-partial, gossip; and with -movement after the name, those
that do not go in step with a job that shows whether every step was applied once:
server-async-movement, server-bounded-movement, server-k-of-n-movement, averaging-partial-movement,
gossip-movement. docs/failures.md says what is done and what is checked.

Exit codes: 0 nothing was lost, 1 something was, 2 wrong use or wrong job file.)";

/// Where the job says nothing: more than one, so that a push has parts.
constexpr std::int64_t kServers = 2;

/// The words of `cohort chaos`; `options` has those that chaos/ takes as they are.
struct ChaosWords {
  chaos::ChaosOptions options;
  std::string run_dir;
  std::string slow_disk;
  bool goodput = false;
};

/// Every option but the folder and --slow-disk goes straight into the options of chaos/.
void configure_chaos(CLI::App& app, ChaosWords& words) {
  chaos::ChaosOptions& options = words.options;
  app.footer(kChaosFooter);
  app.add_option("JOB", options.job_file, "The job file (TOML)")->required();
  app.add_option("--seed", options.seed, "What happens when follows from it");
  app.add_option("--minutes", options.minutes, "No training is begun after these")
      ->check(CLI::PositiveNumber);
  app.add_option("--events", options.events, "How many faults (default: as the time allows)")
      ->check(CLI::PositiveNumber);
  app.add_option("--strategies", options.strategies, "Their names, separated by commas");
  app.add_option("--run-dir", words.run_dir,
                 "The new folder for runs and report (default: runs/chaos-<date>-<time>)");
  add_set_option(app, options.overrides, "Set any key of the job: --set cluster.workers=3");
  app.add_option("--freeze-seconds", options.freeze_seconds, "How long a frozen task is stopped")
      ->check(CLI::PositiveNumber);
  app.add_option("--slow-seconds", options.slow_seconds, "How long a slow task is slow")
      ->check(CLI::PositiveNumber);
  app.add_option("--hang-seconds", options.hang_seconds, "Without a step for so long, a run hangs")
      ->check(CLI::PositiveNumber);
  app.add_option("--slow-disk", words.slow_disk,
                 "The library that delays fsync (build/release/tests/libslow_disk.so): kills also "
                 "while a checkpoint is being written to a slow disk")
      ->check(CLI::ExistingFile);
  app.add_flag("--goodput", words.goodput,
               "Instead: one kill per minute for all the minutes, and what that costs");
}

/// What there is to know about the job before it runs, noted in the options: chaos/ does not read
/// job files. Refuses a job with one worker.
void read_job(chaos::ChaosOptions& options) {
  const Job job = job::load_job(options.job_file, options.overrides);
  options.size = {
      .workers = static_cast<int>(job.cluster.workers),
      .servers = static_cast<int>(job.cluster.servers > 0 ? job.cluster.servers : kServers)};
  const ClusterOptions& cluster = job.cluster;
  options.cluster_settings = {
      fmt::format("cluster.silence_warn_seconds={}", cluster.silence_warn_seconds),
      fmt::format("cluster.silence_lost_seconds={}", cluster.silence_lost_seconds),
      fmt::format("cluster.timeout_seconds={}", cluster.timeout_seconds)};
  options.silence_lost_seconds = job.cluster.silence_lost_seconds;
  if (options.size.workers < 2) {
    fail(ErrorCode::invalid,
         "chaos needs a job with at least 2 workers, or nobody is left to go on; use --set "
         "cluster.workers=3");
  }
}

/// The folder must be new or empty, or runs of another session would be taken for this one's.
void choose_folder(ChaosWords& words) {
  words.options.folder = words.run_dir;
  if (words.run_dir.empty()) {
    words.options.folder =
        fmt::format("runs/chaos-{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
  }
  const auto& folder = words.options.folder;
  if (std::filesystem::exists(folder) && !std::filesystem::is_empty(folder)) {
    fail(ErrorCode::invalid, "the folder {} exists already; name another one with --run-dir",
         folder.string());
  }
}

/// Everything that can be wrong with the words is found before the folder is written to.
int run_chaos(ChaosWords& words) {
  words.options.slow_disk = words.slow_disk;
  read_job(words.options);
  choose_folder(words);
  return words.goodput ? chaos::run_goodput(words.options) : chaos::run_chaos(words.options);
}

}  // namespace

Command chaos_command() {
  const auto words = std::make_shared<ChaosWords>();
  return {"chaos", "Train under seeded faults and check that nothing is lost",
          [words](CLI::App& app) { configure_chaos(app, *words); },
          [words] { return run_chaos(*words); }};
}

}  // namespace cohort::cli
