// Servers that are killed and started again, group of workers by group of workers.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>

#include "base/failpoint.h"
#include "server/client/server_client.h"
#include "server/door/run_server.h"
#include "server/memory/lasting_memory.h"
#include "server/process_test_support.h"
#include "server/server_test_support.h"
#include "server/shard/reconcile_shards.h"
#include "server/wire/server_address.h"

namespace cohort::server {
namespace {

using Consistency = ShardRules::Consistency;

constexpr auto kTimeout = std::chrono::seconds(120);
constexpr std::size_t kDense = 50000;
constexpr int kWorkers = 2;
constexpr std::uint64_t kVersion = 30;
constexpr int kInterrupted = 3;  // The exit code of a worker that has lost somebody.

struct Scenario {
  Consistency consistency = Consistency::sync;
  int servers = 1;
  std::string failpoint;  ///< Of the last server, in the first group.
  bool memory = true;
};

/// What a launcher does: it starts everybody, and after a death everybody anew.
class Launcher {
 public:
  explicit Launcher(const Scenario& scenario)
      : scenario_(scenario), acknowledged_(sizeof(std::atomic<std::uint64_t>)) {
    rules_.workers = kWorkers;
    rules_.consistency = scenario.consistency;
    rules_.quorum = kWorkers;
    rules_.optimizer = {.kind = "sgd"};
    for (int server = 0; server < scenario.servers; ++server) {
      memories_.emplace_back(
          shard_memory_bytes({.dense = kDense}, scenario.servers, server, rules_.optimizer));
    }
  }

  void run() {
    bool done = false;
    int groups = 0;
    for (; !done && groups < 10; ++groups) {
      done = run_group(groups + 1);
      reconcile();
    }
    require(done, "the workers did not come to an end");
    require(groups == 2, "nobody was killed");
    check_floats();
  }

 private:
  bool run_group(int generation) {
    cluster::StoreServer store(cluster::Pass::draw());
    std::vector<pid_t> servers, workers;
    for (int server = 0; server < scenario_.servers; ++server) {
      servers.push_back(start_process(store, server_member(server, 0), [&](cluster::Store& mine) {
        serve(server, generation, mine);
      }));
    }
    for (int worker = 0; worker < kWorkers; ++worker) {
      workers.push_back(start_process(store, worker_member(worker, 0), [&](cluster::Store& mine) {
        work(worker, generation, mine);
      }));
    }
    store.start();
    bool all_done = true;
    for (const pid_t worker : workers) {
      int status = 0;
      require(::waitpid(worker, &status, 0) == worker, "a worker cannot be waited for");
      require(WIFEXITED(status), "a worker was killed");
      const int code = WEXITSTATUS(status);
      require(code == 0 || code == kInterrupted, "a worker failed");
      all_done = all_done && code == 0;
    }
    for (const pid_t server : servers) {
      const int signal = signal_that_ended(server);
      require(signal == 0 || (generation == 1 && server == servers.back()), "a server was killed");
    }
    return all_done;
  }

  void serve(int server, int generation, cluster::Store& store) const {
    if (generation == 1 && server == scenario_.servers - 1) set_failpoints(scenario_.failpoint);
    ServerOptions options;
    options.server = server;
    options.rules = rules_;
    options.generation = generation;
    options.memory = memories_[static_cast<std::size_t>(server)].bytes();
    options.timeout = kTimeout;
    run_server(options, store);
  }

  void work(int worker, int generation, cluster::Store& store) const {
    ClientOptions options;
    options.worker = worker;
    options.servers = scenario_.servers;
    options.generation = generation;
    options.dense = kDense;
    options.share_memory = scenario_.memory;
    options.timeout = kTimeout;
    try {
      ServerClient client(options, store);
      meet(worker, store);
      push_until_done(client, worker == 0, generation);
    } catch (const Error& error) {
      require(error.code() == ErrorCode::peer_lost, error.what());
      ::_exit(kInterrupted);
    }
  }

  /// A server may die of the first push. Who has not found it by then would look for it in vain;
  /// of that a launcher tells its workers, and here is none.
  static void meet(int worker, cluster::Store& store) {
    store.set("met/" + std::to_string(worker), "");
    for (int other = 0; other < kWorkers; ++other) {
      store.get("met/" + std::to_string(other), Deadline::in(kTimeout));
    }
  }

  void push_until_done(ServerClient& client, bool is_first, int generation) const {
    if (is_first) {
      require(client.has_model() == (generation > 1), "there is no model, or one too early");
      if (generation == 1) client.initialise(model_of(std::vector<float>(kDense)));
    }
    Exchange exchange;
    exchange.pull = true;
    client.exchange(exchange);
    exchange.push = true;
    exchange.lr = 1;
    std::ranges::fill(client.outgoing(), 1.0F);
    while (client.version() < kVersion) {
      client.exchange(exchange);
      acknowledged().fetch_add(1);
    }
    exchange.push = false;
    exchange.finished = true;
    client.exchange(exchange);
  }

  std::atomic<std::uint64_t>& acknowledged() const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(acknowledged_.bytes().data());
  }

  void reconcile() const {
    std::vector<std::span<std::byte>> spans;
    for (const LastingMemory& memory : memories_) spans.push_back(memory.bytes());
    reconcile_shards(spans, rules_);
  }

  void check_floats() const {
    for (const LastingMemory& memory : memories_) {
      const auto shard = ShardMemory::find(memory.bytes());
      require(shard.has_value(), "the model is gone");
      const std::uint64_t version = shard->record().version;
      const std::uint64_t pushes =
          scenario_.consistency == Consistency::async ? version : version * kWorkers;
      const auto values = shard->dense().now.values;
      require(std::ranges::all_of(
                  values, [&](float value) { return value == -static_cast<float>(pushes); }),
              "a push was lost or applied twice, or only in part");
      // Of the pushes under way when the server was killed some may have been applied.
      const std::uint64_t acknowledged_pushes = acknowledged().load();
      require(pushes >= acknowledged_pushes && pushes <= acknowledged_pushes + kWorkers,
              "what was acknowledged is not what was applied");
      if (scenario_.consistency == Consistency::sync) {
        require(version == kVersion, "servers in step have made different numbers of updates");
      }
    }
  }

  Scenario scenario_;
  ShardRules rules_;
  LastingMemory acknowledged_;
  std::vector<LastingMemory> memories_;
};

struct Case {
  const char* name;
  Scenario scenario;
};
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class ServerRecoveryDeathTest : public testing::TestWithParam<Case> {};

TEST_P(ServerRecoveryDeathTest, NothingIsLostWithAKilledServer) {
  run_in_new_process([] { Launcher(GetParam().scenario).run(); });
}

INSTANTIATE_TEST_SUITE_P(
    Servers, ServerRecoveryDeathTest,
    testing::Values(
        Case{"sync_before_update", {Consistency::sync, 2, "server.before-update=kill@7", true}},
        Case{"sync_in_update", {Consistency::sync, 3, "server.in-update=kill@9", true}},
        Case{"sync_before_commit", {Consistency::sync, 2, "server.before-commit=kill@7", true}},
        Case{"sync_before_answer", {Consistency::sync, 2, "server.before-answer=kill@7", true}},
        Case{"sync_by_grpc", {Consistency::sync, 2, "server.before-answer=kill@3", false}},
        Case{"async_in_update", {Consistency::async, 1, "server.in-update=kill@21", true}},
        Case{"async_before_commit", {Consistency::async, 3, "server.before-commit=kill@11", true}},
        Case{"async_before_answer", {Consistency::async, 2, "server.before-answer=kill@11", true}},
        Case{"async_by_grpc", {Consistency::async, 1, "server.in-update=kill@15", false}},
        Case{"quorum_in_update", {Consistency::quorum, 2, "server.in-update=kill@15", true}},
        Case{"quorum_before_answer",
             {Consistency::quorum, 1, "server.before-answer=kill@5", true}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cohort::server
