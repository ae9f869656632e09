#include <cohort/kernels.h>
#include <cohort/train.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fail.h"
#include "cli/command.h"
#include "data/sources/mnist_files.h"
#include "job/check_job.h"
#include "job/job_file.h"
#include "kinds/strategy_table.h"
#include "os/shared_wait.h"
#include "train/run/compute_threads.h"
#include "transport/engine_table.h"

namespace cohort::cli {
namespace {

constexpr const char* kTrainFooter = R"(Examples:
  cohort train examples/mnist.toml
  cohort train examples/mnist.toml --workers 4 --set train.epochs=3 --set train.optimizer.lr=0.02
  cohort train job.toml --set strategy.algorithm=ring --set model.hidden=[64,32]
  cohort train job.toml --print-config > resolved.toml

  cohort train job.toml --run-dir runs/mine --resume auto       (the same words start it and go on)

SIGTERM and SIGUSR1 write a checkpoint and end the run with 138.

Exit codes: 0 done, 1 failed, 2 wrong use or wrong job file, 130 stopped by Ctrl-C, 138 starting again
with --resume auto may help: a task was lost, or the run was asked to end and has saved.)";

/// A cause may quote what a library said, which may be long.
constexpr std::size_t kLongestFailure = 4000;

/// The words of `cohort train`. Those that are shortcuts for a key of the job win over it and over
/// --set; what was not said stays as the job has it.
struct TrainWords {
  std::string file;
  std::vector<std::string> overrides;  ///< --set, in the order in which they were said.

  // Shortcuts for keys of [cluster], [strategy] and [log].
  std::optional<std::int64_t> workers;
  std::optional<std::int64_t> servers;
  std::string strategy;
  std::string engine;
  std::optional<std::int64_t> max_restarts;
  std::optional<std::int64_t> min_workers;
  bool trace = false;

  // Of this run only; no keys of the job.
  std::string run_dir;
  std::string resume;
  std::string faults;
  std::string log_format = "text";
  bool quiet = false;
  bool insecure = false;

  // To print something instead of training.
  bool print_config = false;
  bool keys = false;
};

void configure_train(CLI::App& app, TrainWords& words) {
  app.footer(kTrainFooter);
  app.add_option("JOB", words.file, "The job file (TOML)");
  app.add_option("--workers", words.workers, "Workers that share every batch (cluster.workers)");
  app.add_option("--servers", words.servers, "Parameter servers (cluster.servers)");
  app.add_option("--strategy", words.strategy,
                 "How workers agree (strategy.kind): " +
                     fmt::format("{}", fmt::join(kinds::strategy_kinds(), ", ")));
  app.add_option("--engine", words.engine,
                 "What moves the bytes (cluster.engine): " +
                     fmt::format("{}", fmt::join(transport::engine_names(), ", ")));
  add_set_option(app, words.overrides, "Set any key of the job: --set train.epochs=3");
  app.add_option("--run-dir", words.run_dir,
                 "The folder the run writes (default: runs/<name>-<date>-<time>)");
  app.add_option("--resume", words.resume,
                 "Go on from a checkpoint: auto (the newest in --run-dir, if there is one), or the "
                 "folder of another run or of a checkpoint");
  app.add_option("--max-restarts,--max_restarts", words.max_restarts,
                 "Lost tasks that are replaced within ten minutes (cluster.max_restarts)");
  app.add_option("--min-workers,--min_workers", words.min_workers,
                 "With so many left the workers go on without the lost (cluster.min_workers)");
  app.add_option("--faults", words.faults,
                 "For trials: let tasks fail, as in worker-1:worker.step=kill@20");
  app.add_option("--log-format", words.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--print-config", words.print_config,
               "Print the job with every key resolved, and do not train");
  app.add_flag("--keys", words.keys, "Print every key a job file can have, and do not train");
  app.add_flag("--quiet", words.quiet, "Print nothing but errors");
  app.add_flag("--insecure", words.insecure,
               "Between hosts: what is sent may be seen on the network (COHORT_INSECURE=1)");
  app.add_flag("--trace", words.trace, "Write trace.json into the run's folder (log.trace)");
}

/// The job as it will be trained: the file, then --set, then the shortcuts, then the checks. A
/// strategy with servers gets one where nobody has said how many.
Job resolved_job(const TrainWords& words) {
  Job job = job::load_job(words.file, words.overrides);
  if (words.workers) job.cluster.workers = *words.workers;
  if (words.servers) job.cluster.servers = *words.servers;
  if (!words.strategy.empty()) job.strategy.kind = words.strategy;
  if (!words.servers && kinds::uses_servers(job.strategy.kind)) {
    job.cluster.servers = std::max<std::int64_t>(job.cluster.servers, 1);
  }
  if (words.max_restarts) job.cluster.max_restarts = *words.max_restarts;
  if (words.min_workers) job.cluster.min_workers = *words.min_workers;
  if (!words.engine.empty()) job.cluster.engine = words.engine;
  if (words.trace) job.log.trace = true;
  try {
    job::check_job(job);
  } catch (const Error& error) {
    throw error.with_context(words.file);
  }
  return job;
}

/// Before anything is computed. Where this is one of several launchers, nobody knows yet how many
/// workers share the cores, so unless the job says it is prepared for as many threads as there are.
void start_with_fast_kernels(const ClusterOptions& cluster) {
  if (std::getenv("WORLD_SIZE") != nullptr) {
    return use_fast_kernels(static_cast<int>(cluster.threads));
  }
  use_fast_kernels(training::threads_of_worker(
      cluster, {.cores = os::usable_cores(), .local_workers = static_cast<int>(cluster.workers)}));
}

/// A newcomer's first run shall be on real data. Where it cannot be had, the run goes on with
/// digits of its own making.
void fetch_missing_mnist(const Job& job) {
  const std::string folder = job.data.path.empty() ? "data/mnist" : job.data.path;
  const auto last_written = std::filesystem::path(folder) / data::kMnistFiles.back().name;
  if (job.data.kind != "mnist" || std::filesystem::exists(last_written)) return;
  fmt::print(stderr, "cohort: there is no MNIST in {} yet; fetching it\n", folder);
  try {
    data::fetch_mnist(folder);
  } catch (const Error& error) {
    fmt::print(stderr, "cohort: {}\n", error.what());
  }
}

/// --keys and --print-config print and do not train. Otherwise, in this order: the job is resolved,
/// so that a wrong one costs no time; the kernels are set up, for which this program may start
/// itself anew; missing data is fetched; then the job is trained.
int run_train(const TrainWords& words) {
  if (words.keys) {
    fmt::print("{}", job::key_reference());
    return 0;
  }
  if (words.file.empty()) {
    fail(ErrorCode::invalid, "train needs a job file, as in: cohort train examples/mnist.toml");
  }
  const Job job = resolved_job(words);
  if (words.print_config) {
    fmt::print("{}", job::to_toml(job));
    return 0;
  }
  start_with_fast_kernels(job.cluster);
  fetch_missing_mnist(job);
  const Summary summary = train(job, {.run_dir = words.run_dir,
                                      .resume = words.resume,
                                      .quiet = words.quiet,
                                      .json_log = words.log_format == "json",
                                      .faults = words.faults,
                                      .insecure = words.insecure});
  // What a run survived was told when it happened.
  if (summary.exit_code != 0) {
    for (const std::string& failure : summary.failures) {
      fmt::print(stderr, "cohort: {}\n", excerpt(failure, kLongestFailure));
    }
  }
  return summary.exit_code;
}

}  // namespace

Command train_command() {
  const auto words = std::make_shared<TrainWords>();
  return {"train", "Train the model of a job file",
          [words](CLI::App& app) { configure_train(app, *words); },
          [words] { return run_train(*words); }};
}

}  // namespace cohort::cli
