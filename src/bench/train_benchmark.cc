#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "bench/benchmark.h"
#include "bench/measured_process.h"
#include "bench/peers.h"

namespace cohort::bench {
namespace {

// Who takes part with how many workers:
//
//   contender                          1 worker   2 workers   settings
//   Cohort                             yes        yes         its own
//   PyTorch DDP                        –          yes         as installed, tuned
//   LibTorch loop with MPI_Allreduce   –          yes         as installed, tuned
//   plain LibTorch loop                yes        –           as installed, tuned
//   two plain loops that do not talk   –          yes         tuned
//
// All print the fields of train_worker.cc's line; those of a group of programs are put together
// here.

/// A network of bench/networks.h, and how many steps of it are run: those that are not timed, then
/// those that are, one or two seconds on a core.
struct TimedNetwork {
  std::string name;
  int skipped;
  int steps;
};

const std::vector<TimedNetwork> kNetworks = {
    {"mlp", 5, 150}, {"wide-mlp", 5, 8}, {"conv", 5, 12}, {"transformer", 2, 4}};

constexpr const char* kReference = "Cohort";

/// Samples per second add up over the programs of a group; of moments and memory the largest
/// counts.
double sum_of(const Measurement& run, const char* field) {
  double sum = 0;
  for (const auto& line : run.lines) sum += line.at(field).get<double>();
  return sum;
}

double most_of(const Measurement& run, const char* field) {
  double most = 0;
  for (const auto& line : run.lines) most = std::max(most, line.at(field).get<double>());
  return most;
}

/// From the start of the command to the end of the first step, on the clock that all processes
/// share.
Reading start_reading(const Measurement& run) {
  // Cohort starts one worker and two; each is a line of its own.
  const bool alone = run.what.workers == 1 && run.who.own;
  const std::string label = run.who.label + (alone ? ", 1 worker" : "");
  const Metric metric{"from the command to the end of the first step", Unit::seconds};
  return {metric, label, most_of(run, "first_step_at") - run.started_at};
}

/// What the contender's programs say of themselves. What Cohort does with one worker also stands in
/// the table for two, as a line of its own: it shows what the second worker brings.
std::vector<Reading> read_training(const Measurement& run) {
  const std::string& network = run.what.name;
  const Metric one_worker{network + ", 1 worker: training", Unit::samples_per_second};
  const Metric two_workers{network + ", 2 workers: training", Unit::samples_per_second};
  const Metric memory{network + ", 2 workers: memory of the largest", Unit::bytes};

  const double rate = sum_of(run, "samples_per_second");
  std::vector<Reading> readings;
  if (run.what.workers == 1) {
    readings.push_back({one_worker, run.who.label, rate});
    if (run.who.label == kReference) readings.push_back({two_workers, "Cohort, 1 worker", rate});
  } else {
    readings.push_back({two_workers, run.who.label, rate});
    readings.push_back({memory, run.who.label, most_of(run, "peak_rss_bytes")});
  }
  if (network == kNetworks.front().name) readings.push_back(start_reading(run));
  return readings;
}

/// Cohort binds its workers itself; a single one has to be bound from outside.
Contender cohort_training() {
  const auto group = [](const Case& one_case) {
    auto worker =
        cohort_worker(joined({"training", one_case.words[0], std::to_string(one_case.workers)},
                             {one_case.words.begin() + 1, one_case.words.end()}));
    if (one_case.workers == 1) worker.core = allowed_cores().front();
    return ProgramGroup{{worker}};
  };
  return {.name = "cohort", .label = kReference, .group = group, .own = true};
}

bool one_worker(const Case& one_case) {
  return one_case.workers == 1;
}
bool several_workers(const Case& one_case) {
  return one_case.workers > 1;
}

/// A Python process per rank, which find each other by a port of the loopback, as torchrun would
/// start them.
Contender distributed_data_parallel(const std::string& python, const std::string& script,
                                    const PeerSetting& setting) {
  const auto group = [=](const Case& one_case) {
    ProgramGroup ranks{{}, setting.private_network};
    const std::string port = std::to_string(free_port());
    for (int rank = 0; rank < one_case.workers; ++rank) {
      Program program{joined({python, script}, one_case.words), setting.environment, -1};
      program.environment.insert(program.environment.end(),
                                 {{"RANK", std::to_string(rank)},
                                  {"WORLD_SIZE", std::to_string(one_case.workers)},
                                  {"MASTER_ADDR", "127.0.0.1"},
                                  {"MASTER_PORT", port},
                                  {"GLOO_SOCKET_IFNAME", "lo"}});
      ranks.programs.push_back(program);
    }
    return ranks;
  };
  return {"ddp", "PyTorch DDP" + setting.suffix, group, several_workers};
}

/// The plain loop as ranks of one mpirun: what a user can write by hand.
Contender loop_with_mpi(const std::string& program, const PeerSetting& setting) {
  const auto group = [=](const Case& one_case) {
    Program ranks = under_mpirun(one_case.workers, program, one_case.words);
    ranks.environment = setting.environment;
    return ProgramGroup{{ranks}};
  };
  return {"mpi", "LibTorch loop with MPI_Allreduce" + setting.suffix, group, several_workers};
}

/// As many plain loops at once as there are workers.
ProgramGroup plain_loops(const std::string& program, const PeerSetting& setting,
                         const Case& one_case) {
  const auto cores = allowed_cores();
  ProgramGroup loops;
  for (int rank = 0; rank < one_case.workers; ++rank) {
    const int core = cores[static_cast<std::size_t>(rank) % cores.size()];
    loops.programs.push_back({joined({program}, one_case.words), setting.environment, core});
  }
  return loops;
}

Contender plain_loop(const std::string& program, const PeerSetting& setting) {
  const auto group = [=](const Case& one_case) { return plain_loops(program, setting, one_case); };
  return {"plain", "plain LibTorch loop" + setting.suffix, group, one_worker};
}

/// Training without any communication: a limit for every kind of data parallelism.
Contender silent_loops(const std::string& program, const PeerSetting& setting) {
  const auto group = [=](const Case& one_case) { return plain_loops(program, setting, one_case); };
  return {"silent", "two plain loops that do not talk" + setting.suffix, group, several_workers};
}

/// Every peer that is there, as installed and tuned; the others are left out with the package that
/// would bring them.
void add_peers(Benchmark& benchmark, const std::string& wanted_python) {
  auto& contenders = benchmark.contenders;
  const auto script = peer_program("ddp_train.py");
  if (!script && !wanted_python.empty()) {
    fail(ErrorCode::invalid, "--python needs the peers (built with -DCOHORT_BUILD_BENCH=ON)");
  }
  const auto python = script ? python_with_torch(wanted_python) : std::nullopt;
  const auto mpi_loop = in_path("mpirun") ? peer_program("mpi_train") : std::nullopt;
  const auto loop = peer_program("plain_train");
  for (const PeerSetting* setting : {&as_installed(), &tuned()}) {
    if (python) contenders.push_back(distributed_data_parallel(python->path, *script, *setting));
    if (mpi_loop) contenders.push_back(loop_with_mpi(*mpi_loop, *setting));
    if (loop) contenders.push_back(plain_loop(*loop, *setting));
  }
  if (loop) contenders.push_back(silent_loops(*loop, tuned()));  // A limit, so at its best.
  if (python) {
    benchmark.notes.push_back(
        fmt::format("PyTorch DDP is that of PyTorch {} ({})", python->torch, python->path));
  } else {
    benchmark.left_out.push_back({"ddp", "PyTorch DDP (Debian package python3-torch)"});
  }
  if (!mpi_loop) {
    benchmark.left_out.push_back(
        {"mpi", "the loop with MPI (Debian packages openmpi-bin, libopenmpi-dev)"});
  }
  if (!loop) {
    benchmark.left_out.push_back({"plain", "plain loops (built with -DCOHORT_BUILD_BENCH=ON)"});
    benchmark.left_out.push_back({"silent", "silent loops (built with -DCOHORT_BUILD_BENCH=ON)"});
  }
}

Case make_case(const TimedNetwork& network, int workers) {
  return {network.name,
          workers,
          {network.name, std::to_string(network.skipped), std::to_string(network.steps)}};
}

}  // namespace

Benchmark train_benchmark(const BenchOptions& options) {
  Benchmark benchmark;
  benchmark.name = "train";
  benchmark.read = read_training;
  for (auto network : kNetworks) {
    if (options.quick) network = {network.name, 1, 1};
    for (const int workers : {2, 1}) benchmark.cases.push_back(make_case(network, workers));
  }
  benchmark.contenders.push_back(cohort_training());
  add_peers(benchmark, options.python);
  return benchmark;
}

Benchmark start_benchmark(const BenchOptions& options) {
  Benchmark benchmark = train_benchmark(options);
  benchmark.name = "start";
  benchmark.read = [](const Measurement& run) { return std::vector<Reading>{start_reading(run)}; };
  benchmark.cases.clear();
  for (const int workers : {2, 1}) {
    benchmark.cases.push_back(make_case({kNetworks.front().name, 1, 1}, workers));
  }
  std::erase_if(benchmark.contenders, [](const auto& one) { return one.name == "silent"; });
  return benchmark;
}

}  // namespace cohort::bench
