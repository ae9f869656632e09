#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/benchmark.h"
#include "bench/peers.h"
#include "bench/results.h"
#include "bench/timing.h"

namespace cohort::bench {
namespace {

const std::vector<TimedSize> kCallSizes = {
    {4, 5000, 300}, {64 << 10, 1000, 200}, {1 << 20, 150, 60}, {16 << 20, 18, 9}, {64 << 20, 9, 5}};
const std::vector<TimedSize> kQuickCallSizes = {{4, 20, 3}, {64 << 10, 5, 3}};

std::vector<std::string> call_words(bool quick, int TimedSize::*repeats) {
  return plan_words(quick ? kQuickCallSizes : kCallSizes, repeats);
}

/// A case's words are its numbers of workers and servers.
std::string metric_name(const Case& one_case, const std::string& call, std::size_t bytes) {
  const auto counted = [](const std::string& count, const char* what) {
    return count + " " + what + (count == "1" ? "" : "s");
  };
  return fmt::format("{} of {}, {}, {}", call, size_name(bytes),
                     counted(one_case.words[0], "worker"), counted(one_case.words[1], "server"));
}

/// The line of a contender is {"CALL BYTES": seconds, …}; told call by call, from small to large.
std::vector<Reading> read_timings(const Measurement& run) {
  std::vector<Reading> readings;
  for (const std::string& call : server_call_names()) {
    std::vector<std::pair<std::size_t, double>> sizes;
    for (const auto& [name, seconds] : run.lines.at(0).items()) {
      const auto space = name.rfind(' ');
      if (name.substr(0, space) != call) continue;
      sizes.emplace_back(std::stoul(name.substr(space + 1)), seconds.get<double>());
    }
    std::ranges::sort(sizes);
    for (const auto& [bytes, seconds] : sizes) {
      const Metric metric{metric_name(run.what, call, bytes), Unit::seconds};
      readings.push_back({metric, run.who.label, seconds});
    }
  }
  return readings;
}

/// Cohort by shared memory, or as if its servers were on another host.
Contender cohort_server(const std::string& way, const std::string& label, bool quick) {
  const auto repeats = way == "memory" ? &TimedSize::repeats : &TimedSize::repeats_by_socket;
  const auto group = [way, quick, repeats](const Case& one_case) {
    return ProgramGroup{
        {cohort_worker(joined(joined({"ps", way}, one_case.words), call_words(quick, repeats)))}};
  };
  return {.name = way, .label = label, .group = group, .own = way == "memory"};
}

/// Plain gRPC. As installed its threads may use all cores, tuned its processes are bound like
/// Cohort's.
Contender grpc(const std::string& program, const PeerSetting& setting, bool quick) {
  const auto group = [program, setting, quick](const Case& one_case) {
    const std::string pinned = setting.is_tuned() ? "pinned" : "free";
    const Program all{joined(joined({program, pinned}, one_case.words),
                             call_words(quick, &TimedSize::repeats_by_socket)),
                      setting.environment, -1};
    return ProgramGroup{{all}, setting.private_network};
  };
  return {"grpc", "gRPC unary calls" + setting.suffix, group};
}

}  // namespace

Benchmark ps_benchmark(const BenchOptions& options) {
  const bool quick = options.quick;
  Benchmark benchmark;
  benchmark.name = "ps";
  benchmark.read = read_timings;
  for (const int servers : {1, 2}) {
    for (const int workers : {1, 2}) {
      benchmark.cases.push_back({fmt::format("{}-workers-{}-servers", workers, servers),
                                 workers,
                                 {std::to_string(workers), std::to_string(servers)}});
    }
  }
  benchmark.contenders.push_back(cohort_server("memory", "Cohort", quick));
  benchmark.contenders.push_back(
      cohort_server("remote", "Cohort, as if the server were remote", quick));
  if (const auto program = peer_program("peer_grpc_push")) {
    benchmark.contenders.push_back(grpc(*program, as_installed(), quick));
    benchmark.contenders.push_back(grpc(*program, tuned(), quick));
  } else {
    benchmark.left_out.push_back({"grpc", "plain gRPC (Debian package libgrpc++-dev)"});
  }
  return benchmark;
}

}  // namespace cohort::bench
