#include <cohort/kernels.h>

#include <memory>
#include <string>
#include <vector>

#include "base/fail.h"
#include "bench/bench_worker.h"
#include "bench/benchmark.h"
#include "cli/command.h"

namespace cohort::cli {
namespace {

constexpr const char* kBenchFooter = R"(
Examples:
  cohort bench allreduce
  cohort bench train --only mlp conv --json train.json
  cohort bench train --against ../before/build/release/cohort --only cohort
  cohort bench train --python ~/venv/bin/python3 --only ddp
  cohort bench loop --only mlp sums
  cohort bench ps --only 1-workers-1-servers
  cohort bench checkpoint
  cohort bench start
  cohort bench strategies examples/mnist.toml --set cluster.workers=4

Every contender is run in turn, round by round, on the same cores; docs/benchmarks.md says how.)";

/// A benchmark by the word that names it, and which options make sense with it.
struct NamedBenchmark {
  const char* name;
  const char* summary;
  bench::Benchmark (*make)(const bench::BenchOptions& options);
  bool takes_builds = true;  ///< --against
  bool has_python = false;   ///< --python
};

/// Where only stretches of Cohort's own training are compared, another build has no place; and only
/// trainings have a peer in Python.
constexpr NamedBenchmark kBenchmarks[] = {
    {"allreduce", "Sums between processes: Cohort, Open MPI, Gloo", bench::allreduce_benchmark},
    {"train", "Training: Cohort, PyTorch DDP, LibTorch loops, MPI", bench::train_benchmark, true,
     true},
    {"loop", "Own loops by Cohort, DDP, MPI, and their sums of tensors", bench::loop_benchmark,
     true, true},
    {"ps", "Pushes and pulls: Cohort's parameter server, plain gRPC", bench::ps_benchmark},
    {"checkpoint", "Training with checkpoints and without: what they cost",
     bench::checkpoint_benchmark, false},
    {"start", "From the command to the end of the first step", bench::start_benchmark, true, true},
};

/// The words of all of `cohort bench`: only one of its subcommands is called, so they share
/// options.
struct BenchWords {
  CLI::App* app = nullptr;
  bench::BenchOptions options;
  bench::StrategiesOptions strategies;
  std::vector<std::string> worker;
};

void configure_strategies(CLI::App& app, bench::StrategiesOptions& options) {
  app.add_option("JOB", options.job_file, "The job file (TOML)")->required();
  add_set_option(app, options.overrides, "Set any key of the job: --set cluster.workers=4");
  app.add_option("--only", options.only, "Only strategies whose name has one of these words");
  app.add_option("--out", options.folder, "The new folder for runs, table and plot")
      ->default_val("runs/strategies");
  app.add_flag("--quick", options.quick, "A few steps of each: does everything run?");
}

/// A subcommand for every benchmark, one for strategies, which takes a job, and a hidden one for
/// the workers that benchmarks start.
void configure_bench(CLI::App& app, BenchWords& words) {
  words.app = &app;
  app.footer(kBenchFooter);
  app.require_subcommand(1);
  for (const auto& benchmark : kBenchmarks) {
    auto* one = app.add_subcommand(benchmark.name, benchmark.summary);
    auto& options = words.options;
    one->add_option("--rounds", options.rounds, "Times every contender is run (at least 7)");
    one->add_option("--only", options.only, "Only these contenders or networks");
    one->add_flag("--quick", options.quick, "One round of almost nothing: does everything run?");
    one->add_option("--json", options.json_path, "Also write all figures into this file");
    if (benchmark.takes_builds) {
      one->add_option("--against", options.against,
                      "Another build of cohort to run beside this one")
          ->type_name("BINARY");
    }
    if (benchmark.has_python) {
      one->add_option("--python", options.python, "The Python whose PyTorch is the peer")
          ->type_name("PATH");
    }
  }
  configure_strategies(
      *app.add_subcommand("strategies", "One job with every strategy: a table and a plot"),
      words.strategies);
  auto* worker = app.add_subcommand("worker", "What a benchmark of Cohort runs")->group("");
  worker->add_option("WORDS", words.worker);
}

/// A benchmark's worker sets up nothing: it has what whoever started it has set for it.
int run_bench(const BenchWords& words) {
  if (words.app->got_subcommand("worker")) {
    bench::run_bench_worker(words.worker);
    return 0;
  }
  if (words.app->got_subcommand("strategies")) {
    use_fast_kernels();
    return bench::compare_strategies(words.strategies);
  }
  use_fast_kernels(1);  // What Cohort and its tuned peers then inherit.
  for (const auto& benchmark : kBenchmarks) {
    if (!words.app->got_subcommand(benchmark.name)) continue;
    return bench::run_benchmark(benchmark.make(words.options), words.options);
  }
  fail(ErrorCode::invalid, "cohort bench needs the name of a benchmark");
}

}  // namespace

Command bench_command() {
  auto words = std::make_shared<BenchWords>();
  return {.name = "bench",
          .summary = "Measure Cohort beside its peers",
          .configure = [words](CLI::App& app) { configure_bench(app, *words); },
          .run = [words] { return run_bench(*words); }};
}

}  // namespace cohort::cli
