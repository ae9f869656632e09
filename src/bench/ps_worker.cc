#include <fmt/format.h>

#include "base/fail.h"
#include "base/names.h"
#include "bench/bench_worker.h"
#include "bench/measured_process.h"
#include "bench/timing.h"
#include "cluster/socket_store.h"
#include "meet/process_settings.h"
#include "os/memory.h"
#include "server/client/server_client.h"
#include "server/door/run_server.h"

namespace cohort::bench {
namespace {

// `cohort bench worker ps`: for each size a group of workers and servers is forked, as a launcher
// would start it. They meet by a store, as in a training, and every worker makes the same calls:
// the model begins as zeros, and every push adds ones.

constexpr double kTimeoutSeconds = 60;
constexpr auto kTimeout = std::chrono::seconds(60);

/// Who takes part; every process is bound to one of the cores, workers first.
struct Group {
  int workers = 1;
  int servers = 1;
  bool memory = true;  ///< False: as if the servers were on another host.
  std::vector<int> cores = allowed_cores();
};

/// Every push is added to the parameters at once.
void serve(const Group& group, int server, cluster::Store& store) {
  pin_to_core_of(group.workers + server, group.cores);
  server::ServerOptions options;
  options.server = server;
  options.rules.workers = group.workers;
  options.rules.consistency = server::ShardRules::Consistency::async;
  options.rules.optimizer.kind = "sgd";
  options.cores = static_cast<int>(group.cores.size());
  options.timeout = kTimeout;
  server::run_server(options, store);
}

/// Seconds of each of server_call_names(). Every worker makes the same calls; the first one's times
/// count.
void time_calls(const Group& group, int worker, const TimingPlan& plan, cluster::Store& store,
                std::span<double> seconds) {
  pin_to_core_of(worker, group.cores);
  server::ClientOptions options;
  options.worker = worker;
  options.servers = group.servers;
  options.dense = plan.count;
  options.share_memory = group.memory;
  options.cores = static_cast<int>(group.cores.size());
  options.timeout = kTimeout;
  server::ServerClient client(options, store);
  if (worker == 0) {
    server::ServerModel zeros;
    zeros.dense.values.resize(plan.count);
    client.initialise(zeros);
  }
  std::ranges::fill(client.outgoing(), -1.0F);
  server::Exchange push, pull, both;
  push.push = both.push = true;
  pull.pull = both.pull = true;
  push.lr = both.lr = 1;  // Minus minus one: a plain add.
  const server::Exchange* const calls[] = {&push, &pull, &both};
  for (std::size_t call = 0; call < seconds.size(); ++call) {
    seconds[call] = seconds_per_call(plan.repeats, [&] { client.exchange(*calls[call]); });
  }
  if (client.incoming()[0] < 1) throw std::runtime_error("what was pushed did not come back");
  client.close();
}

/// Workers and servers in processes of their own; returns what worker 0 measured.
std::vector<double> time_in_processes(const Group& group, const TimingPlan& plan) {
  const auto count = server_call_names().size();
  const auto answer = os::SharedMemory::create(count * sizeof(double));
  const std::span times(reinterpret_cast<double*>(answer.data()), count);
  cluster::StoreServer rendezvous(cluster::Pass::draw());
  using Role = cluster::Member::Role;
  const auto connect = [&](Role role, int number) {
    return cluster::SocketStore(rendezvous.endpoint(), rendezvous.pass(),
                                Deadline::in_seconds(kTimeoutSeconds), {role, number});
  };
  for (int server = 0; server < group.servers; ++server) {
    in_child(fmt::format("process {}", server), [&] {
      meet::keep_large_blocks();  // As every process of a run does.
      auto store = connect(Role::server, server);
      serve(group, server, store);
    });
  }
  for (int worker = 0; worker < group.workers; ++worker) {
    in_child(fmt::format("process {}", worker), [&] {
      meet::keep_large_blocks();
      auto store = connect(Role::worker, worker);
      std::vector<double> own(count);
      time_calls(group, worker, plan, store, own);
      if (worker == 0) std::ranges::copy(own, times.begin());
    });
  }
  rendezvous.start();  // Its thread begins only now that nobody forks any more.
  await_children(group.servers + group.workers, "a process of the measured group failed");
  return {times.begin(), times.end()};
}

}  // namespace

void run_ps_worker(const std::vector<std::string>& words) {
  if (words.size() < 4) {
    fail(ErrorCode::invalid, "usage: ps memory|remote WORKERS SERVERS BYTES:REPEATS...");
  }
  check_known("way", words[0], {"memory", "remote"});
  const Group group{.workers = std::stoi(words[1]),
                    .servers = std::stoi(words[2]),
                    .memory = words[0] == "memory"};
  TimingLine line;
  for (const TimingPlan& plan : parse_plans({words.begin() + 3, words.end()})) {
    const auto seconds = time_in_processes(group, plan);
    for (std::size_t call = 0; call < seconds.size(); ++call) {
      add_call(line, server_call_names()[call], plan, seconds[call]);
    }
  }
  line.print();
}

}  // namespace cohort::bench
