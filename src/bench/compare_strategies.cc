#include <cohort/train.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/fail.h"
#include "base/files.h"
#include "base/json.h"
#include "bench/benchmark.h"
#include "bench/plot.h"
#include "job/job_file.h"
#include "kernel/kernel_report.h"
#include "kinds/strategy_table.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

// Each strategy is one training by the public door of the library, in a folder of its own name.
// Time and loss come from its metrics.jsonl, the rest of the table from its summary.

/// A strategy by the name it has in the table.
struct Contestant {
  std::string label;
  StrategyOptions strategy;
};

StrategyOptions compressed(const std::string& codec) {
  StrategyOptions options;
  options.compression.kind = codec;
  return options;
}

StrategyOptions pushing_deltas() {
  StrategyOptions options;
  options.kind = "parameter-server";
  options.consistency = "async";
  options.push = "delta";
  options.local_steps = 4;
  return options;
}

/// Every way there is, and some with more than defaults.
std::vector<Contestant> contestants(std::int64_t workers) {
  std::vector<Contestant> all;
  for (const kinds::StrategyWay& way : kinds::strategy_ways()) {
    StrategyOptions options = kinds::options_of(way);
    if (way.traits.takes_quorum) options.quorum = std::max<std::int64_t>(1, workers - 1);
    all.push_back({way.title, options});
  }
  all.push_back({"all-reduce, topk 1 %", compressed("topk")});
  all.push_back({"all-reduce, lowrank 4", compressed("lowrank")});
  all.push_back({"server, async, deltas of 4", pushing_deltas()});
  return all;
}

/// What became of one strategy. `by_bytes` has MB, of all workers.
struct Result {
  std::string label;
  Summary summary;
  Curve by_time;
  Curve by_bytes;
};

/// A batch's loss jumps; its running mean shows where it goes.
class RunningMean {
 public:
  double add(double value) {
    constexpr double kKept = 0.8;
    mean_ = first_ ? value : kKept * mean_ + (1 - kKept) * value;
    first_ = false;
    return mean_;
  }

 private:
  double mean_ = 0;
  bool first_ = true;
};

/// The loss of every line of metrics.jsonl, against seconds and against bytes.
void read_curves(Result& result) {
  std::ifstream lines(std::filesystem::path(result.summary.run_dir) / "metrics.jsonl");
  RunningMean loss;
  std::string line;
  while (std::getline(lines, line)) {
    const Json record = parse_json<Json>(line);
    if (!record.contains("loss")) continue;
    const double mean = loss.add(record.at("loss").get<double>());
    result.by_time.points.emplace_back(record.at("seconds").get<double>(), mean);
    result.by_bytes.points.emplace_back(record.at("bytes_sent").get<double>(), mean);
  }
  // The records have the chief's bytes; its share of all workers' stays about the same.
  if (result.by_bytes.points.empty()) return;
  const double chiefs = result.by_bytes.points.back().first;
  const double all = static_cast<double>(result.summary.bytes_sent);
  for (auto& [bytes, mean] : result.by_bytes.points) {
    bytes *= chiefs > 0 ? all / chiefs / 1e6 : 0;
  }
}

/// Trains with one strategy. The job's own strategy is replaced as a whole, the rest of the job
/// stays, but for servers where the strategy has none.
Result run_one(const Contestant& contestant, const StrategiesOptions& options) {
  Job job = job::load_job(options.job_file, options.overrides);
  job.strategy = contestant.strategy;
  if (!kinds::uses_servers(job.strategy.kind)) job.cluster.servers = 0;
  if (options.quick) {
    job.train.epochs = 0;
    job.train.steps = 4;
    job.log.every_steps = 1;
  }
  Result result{contestant.label, {}, {contestant.label, {}}, {contestant.label, {}}};
  const std::string name = fmt::format("{}/{}", options.folder, contestant.label);
  fmt::print("{} …\n", contestant.label);
  std::fflush(stdout);
  // One that cannot be run shall not cost the others' results.
  try {
    result.summary = train(job, {.run_dir = name, .quiet = true, .json_log = false});
    read_curves(result);
  } catch (const std::exception& error) {
    result.summary.status = "failed";
    result.summary.exit_code = 1;
    result.summary.failures.emplace_back(error.what());
  }
  for (const std::string& failure : result.summary.failures) fmt::print("  {}\n", failure);
  return result;
}

/// The share of their time in which workers stood still for others.
double wait_share(const Summary& summary) {
  double all = 0;
  for (const auto& [phase, seconds] : summary.phase_seconds) all += seconds;
  return all > 0 ? summary.phase_seconds.at("wait") / all : 0;
}

std::string number_or_dash(const std::optional<double>& value, double factor, int digits) {
  return value ? fmt::format("{:.{}f}", factor * *value, digits) : "–";
}

/// Markdown, which also reads well in a terminal.
std::string table_of(const std::vector<Result>& results) {
  std::string table = fmt::format(
      "| {:<28} | {:>10} | {:>9} | {:>7} | {:>9} | {:>8} | {:>6} | {:>9} |\n"
      "|{:-<30}|{:->11}:|{:->10}:|{:->8}:|{:->10}:|{:->9}:|{:->7}:|{:->10}:|\n",
      "strategy", "accuracy %", "val. loss", "seconds", "samples/s", "MB sent", "wait %",
      "staleness", "", "", "", "", "", "", "", "");
  for (const Result& result : results) {
    const Summary& summary = result.summary;
    const std::string staleness =
        summary.staleness ? fmt::format("{:.1f}", summary.staleness->mean) : "–";
    table += fmt::format(
        "| {:<28} | {:>10} | {:>9} | {:>7.1f} | {:>9} | {:>8.1f} | {:>6.1f} | {:>9} |\n",
        result.label, number_or_dash(summary.accuracy, 100, 2), number_or_dash(summary.loss, 1, 4),
        summary.seconds, number_or_dash(summary.samples_per_second, 1, 0),
        static_cast<double>(summary.bytes_sent) / 1e6, 100 * wait_share(summary), staleness);
  }
  return table;
}

std::string json_of(const std::vector<Result>& results) {
  Json all = Json::array();
  for (const Result& result : results) {
    const Summary& summary = result.summary;
    all.push_back({{"strategy", result.label},
                   {"status", summary.status},
                   {"accuracy", summary.accuracy ? Json(*summary.accuracy) : Json()},
                   {"loss", summary.loss ? Json(*summary.loss) : Json()},
                   {"seconds", summary.seconds},
                   {"bytes_sent", summary.bytes_sent},
                   {"wait_share", wait_share(summary)},
                   {"run_dir", summary.run_dir}});
  }
  return Json{{"kernels", kernel::to_json(kernel::kernel_report())}, {"strategies", all}}.dump(2) +
         "\n";
}

std::string plot_of(const std::vector<Result>& results, const std::string& title) {
  Panel by_time{.title = "loss against time",
                .x_label = "seconds",
                .y_label = "training loss",
                .log_x = false,
                .log_y = true,
                .curves = {}};
  Panel by_bytes{.title = "loss against bytes",
                 .x_label = "MB sent by all workers",
                 .y_label = "training loss",
                 .log_x = true,
                 .log_y = true,
                 .curves = {}};
  for (const Result& result : results) {
    by_time.curves.push_back(result.by_time);
    by_bytes.curves.push_back(result.by_bytes);
  }
  return to_svg(title, {by_time, by_bytes});
}

bool is_wanted(const Contestant& contestant, const std::vector<std::string>& only) {
  return only.empty() || std::ranges::any_of(only, [&](const std::string& part) {
           return contestant.label.find(part) != std::string::npos;
         });
}

}  // namespace

// The table is written after all have run, and has a row for each, failed ones too: one that is
// missing would look as if it had not been tried.
int compare_strategies(const StrategiesOptions& options) {
  if (std::filesystem::exists(options.folder)) {
    fail(ErrorCode::invalid, "the folder {} exists already; name another one with --out",
         options.folder);
  }
  const Job job = job::load_job(options.job_file, options.overrides);
  std::vector<Contestant> wanted = contestants(job.cluster.workers);
  std::erase_if(wanted, [&](const auto& one) { return !is_wanted(one, options.only); });
  if (wanted.empty()) {
    fail(ErrorCode::invalid, "--only {} names no strategy", fmt::join(options.only, " "));
  }
  fmt::print("kernels: {}\n", kernel::one_line(kernel::kernel_report()));
  std::vector<Result> results;
  for (const Contestant& contestant : wanted) results.push_back(run_one(contestant, options));

  const std::filesystem::path folder = options.folder;
  const std::string table = table_of(results);
  write_file_atomically(folder / "strategies.md", table);
  write_file_atomically(folder / "strategies.json", json_of(results));
  write_file_atomically(
      folder / "strategies.svg",
      plot_of(results, fmt::format("{}, {} workers", job.name, job.cluster.workers)));
  fmt::print("\n{}\n{}: table, figures and plot (strategies.svg)\n", table, options.folder);
  return std::ranges::all_of(results, [](const Result& r) { return r.summary.exit_code == 0; }) ? 0
                                                                                                : 1;
}

}  // namespace cohort::bench
