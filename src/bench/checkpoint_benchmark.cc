#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/benchmark.h"
#include "bench/peers.h"

namespace cohort::bench {
namespace {

constexpr int kWorkers = 2;
constexpr const char* kWithout = "no checkpoints";
constexpr const char* kWith = "one in 100 steps";
constexpr double kGoalPercent = 2;

/// A network, and how many checkpoints are timed: one per 200 steps, of which the 100 around the
/// checkpoint are compared with the 100 after them.
struct Length {
  std::string network;
  int checkpoints;
};

const std::vector<Length> kLengths = {{"mlp", 16}, {"wide-mlp", 2}};

/// The metric by which training with checkpoints is compared with training without.
Metric rate_of(const std::string& network) {
  return {network + ", 2 workers: training", Unit::samples_per_second};
}

/// There is only one contender: what is compared are stretches of one and the same training, which
/// are seconds apart. Its measurement has a reading for each kind of stretch.
Contender cohort_itself() {
  const auto group = [](const Case& one_case) {
    ProgramGroup alone{{cohort_worker(joined({"training"}, one_case.words))}};
    alone.timeout_seconds = 600;
    return alone;
  };
  return {"cohort", kWithout, group};
}

/// The line has both rates and both times; the label says which row of the table each goes to.
std::vector<Reading> read_run(const Measurement& run) {
  const nlohmann::json& line = run.lines.front();
  const std::string& network = run.what.name;
  const Metric seconds{network + ": writing one in the background", Unit::seconds};
  const Metric stall{network + ": the chief stands still for one", Unit::seconds};
  const auto value = [&](const char* field) { return line.at(field).get<double>(); };
  return {{rate_of(network), kWithout, value("rate_without_checkpoint")},
          {rate_of(network), kWith, value("rate_with_checkpoint")},
          {seconds, kWith, value("checkpoint_seconds")},
          {stall, kWith, value("checkpoint_stall")}};
}

/// Nobody trains faster for writing checkpoints: where it looks so by more than the goal, what was
/// measured is something else.
const char* verdict(double percent) {
  if (percent < -kGoalPercent) return "cannot be told: the machine is too busy with other things";
  return percent <= kGoalPercent ? "reached" : "missed";
}

/// By how many percent checkpoints slow training down, and whether that reaches the goal.
std::string conclusion(const Results& results) {
  std::string text;
  for (const Length& length : kLengths) {
    const auto ratio = results.ratio(rate_of(length.network), kWithout, kWith);
    if (!ratio) continue;
    const auto percent = [](double times) { return 100 * (times - 1); };
    const double cost = percent(ratio->median);
    text += fmt::format(
        "{}: checkpoints cost {:.2f} % ({:.2f} to {:.2f} in single rounds); goal: at most {} %, "
        "{}\n",
        length.network, cost, percent(ratio->lowest), percent(ratio->highest), kGoalPercent,
        verdict(cost));
  }
  return text;
}

}  // namespace

Benchmark checkpoint_benchmark(const BenchOptions& options) {
  Benchmark benchmark;
  benchmark.name = "checkpoint";
  benchmark.read = read_run;
  benchmark.conclude = conclusion;
  for (const Length& length : kLengths) {
    const int every = options.quick ? 4 : 200;
    const int checkpoints = options.quick ? 1 : length.checkpoints;
    constexpr int kSkipped = 1;
    const std::vector<std::string> words = {
        length.network, std::to_string(kWorkers), std::to_string(kSkipped),
        std::to_string(every * (checkpoints + 1)), std::to_string(every)};
    benchmark.cases.push_back({length.network, kWorkers, words});
  }
  benchmark.contenders = {cohort_itself()};
  return benchmark;
}

}  // namespace cohort::bench
