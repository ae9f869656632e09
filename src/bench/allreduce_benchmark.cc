#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/benchmark.h"
#include "bench/measured_process.h"
#include "bench/peers.h"
#include "bench/results.h"
#include "bench/timing.h"

namespace cohort::bench {
namespace {

const std::vector<TimedSize> kSizes = {{1 << 10, 20000, 500},
                                       {64 << 10, 2000, 300},
                                       {1 << 20, 300, 150},
                                       {16 << 20, 20, 20},
                                       {64 << 20, 10, 8}};
/// With more ranks than cores everybody waits for the scheduler; one small size shows how they do
/// it.
const std::vector<TimedSize> kOversubscribedSizes = {{1 << 10, 3000, 200}};
const std::vector<TimedSize> kQuickSizes = {{1 << 10, 20, 5}, {64 << 10, 5, 3}};

constexpr int kRanks = 2;

/// Where there are more ranks than cores, the name says so.
std::string metric_name(const Case& one_case, std::size_t bytes) {
  const auto cores = static_cast<int>(allowed_cores().size());
  const std::string where = one_case.workers > cores ? fmt::format(" on {} cores", cores) : "";
  return fmt::format("sum of {}, {} ranks{}", size_name(bytes), one_case.workers, where);
}

/// The line of a contender is {"BYTES": seconds, …}; sizes are told from small to large.
std::vector<Reading> read_sums(const Measurement& run) {
  std::vector<std::pair<std::size_t, double>> sums;
  for (const auto& [bytes, seconds] : run.lines.at(0).items()) {
    sums.emplace_back(std::stoul(bytes), seconds.get<double>());
  }
  std::sort(sums.begin(), sums.end());
  std::vector<Reading> readings;
  for (const auto& [bytes, seconds] : sums) {
    const Metric metric{metric_name(run.what, bytes), Unit::seconds};
    readings.push_back({metric, run.who.label, seconds});
  }
  return readings;
}

/// Cohort, or the bare loop: both are kinds of `cohort bench worker sum`.
Contender own(const std::string& name, const std::string& label) {
  const auto group = [name](const Case& one_case) {
    const auto words = joined({"sum", name, std::to_string(one_case.workers)}, one_case.words);
    return ProgramGroup{{cohort_worker(words)}};
  };
  return {name, label, group};
}

/// One program under mpirun, whose ranks bind themselves.
Contender open_mpi(const std::string& program, const PeerSetting& setting) {
  const auto group = [program, setting](const Case& one_case) {
    Program ranks = under_mpirun(one_case.workers, program, one_case.words);
    ranks.environment = setting.environment;
    return ProgramGroup{{ranks}};
  };
  return {"mpi", "Open MPI" + setting.suffix, group};
}

/// One program that forks its ranks. It goes through sockets, so it repeats less often.
Contender gloo(const std::string& program, const PeerSetting& setting, bool quick) {
  const auto group = [program, setting, quick](const Case& one_case) {
    const auto& sizes = quick                        ? kQuickSizes
                        : one_case.workers == kRanks ? kSizes
                                                     : kOversubscribedSizes;
    const Program ranks{joined({program, std::to_string(one_case.workers)},
                               plan_words(sizes, &TimedSize::repeats_by_socket)),
                        setting.environment, -1};
    return ProgramGroup{{ranks}, setting.private_network};
  };
  return {"gloo", "Gloo" + setting.suffix, group};
}

}  // namespace

Benchmark allreduce_benchmark(const BenchOptions& options) {
  const bool quick = options.quick;
  Benchmark benchmark;
  benchmark.name = "allreduce";
  benchmark.read = read_sums;
  benchmark.cases = {
      {"2-ranks", kRanks, plan_words(quick ? kQuickSizes : kSizes, &TimedSize::repeats)},
      {"4-ranks", 4, plan_words(quick ? kQuickSizes : kOversubscribedSizes, &TimedSize::repeats)}};

  auto& contenders = benchmark.contenders;
  contenders.push_back(own("cohort", "Cohort"));
  contenders.back().own = true;
  contenders.push_back(own("bare", "bare loop in place (limit)"));
  contenders.back().takes_part = [](const Case& one_case) {
    return one_case.workers <= static_cast<int>(allowed_cores().size());  // It only ever spins.
  };
  const auto mpi_program = peer_program("peer_mpi_allreduce");
  if (mpi_program && in_path("mpirun")) {
    contenders.push_back(open_mpi(*mpi_program, as_installed()));
    contenders.push_back(open_mpi(*mpi_program, tuned()));
  } else {
    benchmark.left_out.push_back({"mpi", "Open MPI (Debian packages openmpi-bin, libopenmpi-dev)"});
  }
  if (const auto program = peer_program("peer_gloo_allreduce")) {
    contenders.push_back(gloo(*program, as_installed(), quick));
    contenders.push_back(gloo(*program, tuned(), quick));
  } else {
    benchmark.left_out.push_back({"gloo", "Gloo (Debian package libgloo-dev)"});
  }
  return benchmark;
}

}  // namespace cohort::bench
