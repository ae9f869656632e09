// Servers and workers as processes, of which one is killed. Workers that live go on with the next
// servers; then every shard has the push of every piece of work, each once.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/failpoint.h"
#include "cluster/store.h"
#include "server/client/server_client.h"
#include "server/client/server_link.h"
#include "server/door/run_server.h"
#include "server/memory/lasting_memory.h"
#include "server/process_test_support.h"
#include "server/server_test_support.h"
#include "server/shard/reconcile_shards.h"
#include "server/wire/wire.h"

namespace cohort::server {
namespace {

using Consistency = ShardRules::Consistency;

constexpr auto kTimeout = std::chrono::seconds(120);
constexpr int kServers = 2, kWorkers = 2;
constexpr std::size_t kPieces = 32;
constexpr int kDeadlyPush = 5;
constexpr std::size_t kDense = kServers * 1024;  // Of every shard, many floats for every piece.

struct Scenario {
  Consistency consistency = Consistency::async;
  int server = -1;  ///< That is killed,
  int worker = -1;  ///< or a worker,
  std::string failpoint = {};
  bool memory = true;
  bool skips_first = false;  ///< The worker's push comes to server 1 alone, as by gRPC it may.
};

/// Both groups of a run. The second servers are there from the start, since a process with threads
/// must not fork, and wait for a word.
class TwoGroups {
 public:
  explicit TwoGroups(const Scenario& scenario) : scenario_(scenario) {
    for (int server = 0; server < kServers; ++server) {
      memories_.emplace_back(shard_memory_bytes({.dense = kDense}, kServers, server, sgd()));
    }
    require(::pipe(go_.data()) == 0, "there is no pipe");
  }

  void run() {
    cluster::StoreServer store(cluster::Pass::draw());
    std::vector<pid_t> first, second, workers;
    for (int server = 0; server < kServers; ++server) {
      first.push_back(start_process(store, server_member(server, 0),
                                    [&](cluster::Store& mine) { serve(server, 1, mine); }));
      second.push_back(start_process(store, server_member(server, 0), [&](cluster::Store& mine) {
        char word = 0;
        if (::read(go_[0], &word, 1) == 1) serve(server, 2, mine);
      }));
    }
    for (int worker = 0; worker < kWorkers; ++worker) {
      workers.push_back(start_process(store, worker_member(worker, 0),
                                      [&](cluster::Store& mine) { work(worker, mine); }));
    }
    store.start();
    for (int server = 0; server < kServers; ++server) {
      const int signal = signal_that_ended(first[static_cast<std::size_t>(server)]);
      require(signal == (server == scenario_.server ? SIGKILL : 0), "a server ended otherwise");
    }
    reconcile();
    require(::write(go_[1], "go", kServers) == kServers, "the next servers cannot be told");
    for (int worker = 0; worker < kWorkers; ++worker) {
      const int signal = signal_that_ended(workers[static_cast<std::size_t>(worker)]);
      require(signal == (worker == scenario_.worker ? SIGKILL : 0), "a worker ended otherwise");
    }
    for (const pid_t server : second)
      require(signal_that_ended(server) == 0, "a server was killed");
    reconcile();
    check();
  }

 private:
  static OptimizerOptions sgd() { return {.kind = "sgd"}; }

  ShardRules rules(std::int64_t generation) const {
    ShardRules rules;
    rules.workers = generation == 2 && scenario_.worker >= 0 ? kWorkers - 1 : kWorkers;
    rules.consistency = scenario_.consistency;
    rules.quorum = kWorkers;
    rules.optimizer = sgd();
    return rules;
  }

  void reconcile() const {
    std::vector<std::span<std::byte>> spans;
    for (const LastingMemory& memory : memories_) spans.push_back(memory.bytes());
    reconcile_shards(spans, rules(1));
  }

  void serve(int server, std::int64_t generation, cluster::Store& store) const {
    if (generation == 1 && server == scenario_.server) set_failpoints(scenario_.failpoint);
    ServerOptions options;
    options.server = server;
    options.servers = kServers;
    options.rules = rules(generation);
    options.generation = generation;
    options.memory = memories_[static_cast<std::size_t>(server)].bytes();
    options.timeout = kTimeout;
    if (server == 0) {
      options.board = cluster::WorkBoard::Options{.workers = options.rules.workers,
                                                  .end_step = static_cast<std::int64_t>(kPieces)};
    }
    cluster::PrefixStore view(store, std::to_string(generation) + "/", {}, members(generation));
    run_server(options, view);
  }

  void work(int worker, cluster::Store& store) const {
    if (worker == scenario_.worker && scenario_.server < 0) set_failpoints(scenario_.failpoint);
    UnansweredPush unanswered;
    bool lost = false;
    {
      cluster::PrefixStore view(store, "1/");
      ServerClient client(client_options(worker, 1), view);
      if (worker == 0) client.initialise(model_of(std::vector<float>(kDense)));
      meet(store, "here", worker, kWorkers);  // Nobody dies before all have come.
      if (worker == scenario_.worker && scenario_.skips_first) push_to_second(client, store);
      lost =
          !push_all(client, [&](int pushes) { leave_work_for_the_doomed(store, worker, pushes); });
      unanswered = client.unanswered();
    }
    require(lost == (scenario_.server >= 0), "the group ended otherwise");
    if (worker > scenario_.worker && scenario_.worker >= 0) --worker;
    cluster::PrefixStore view(store, "2/", {}, members(2));
    ServerClient client(client_options(worker, 2), view);
    if (!unanswered.empty()) client.push_again(unanswered);
    meet(store, "again", worker, rules(2).workers);
    require(push_all(client, [](int) {}), "the second group has lost somebody");
  }

  /// A quick worker would do all the work before the one that is to die comes to its push: it stops
  /// half way until that one has a piece of work in hand which it cannot push and live.
  void leave_work_for_the_doomed(cluster::Store& store, int worker, int pushes) const {
    if (scenario_.worker < 0) return;
    if (worker == scenario_.worker && pushes == kDeadlyPush - 1) store.set("doomed", "yes");
    if (worker != scenario_.worker && pushes == static_cast<int>(kPieces) / 2) {
      store.get("doomed", Deadline::in(kTimeout));
    }
  }

  /// The workers of a group, by their ranks there.
  std::vector<int> members(std::int64_t generation) const {
    std::vector<int> all(kWorkers);
    std::iota(all.begin(), all.end(), 0);
    if (generation == 2) std::erase(all, scenario_.worker);
    return all;
  }

  static void meet(cluster::Store& store, const std::string& where, int worker, int workers) {
    store.set(where + std::to_string(worker), "done");
    for (int other = 0; other < workers; ++other) {
      store.get(where + std::to_string(other), Deadline::in(kTimeout));
    }
  }

  ClientOptions client_options(int worker, std::int64_t generation) const {
    ClientOptions options;
    options.worker = worker;
    options.servers = kServers;
    options.generation = generation;
    options.dense = kDense;
    options.share_memory = scenario_.memory;
    options.timeout = kTimeout;
    return options;
  }

  /// Takes a piece, pushes it to the second server and ends.
  void push_to_second(ServerClient& client, cluster::Store& store) const {
    Exchange claim;
    claim.claim = true;
    const cluster::Claim piece = client.exchange(claim).claim.value();
    store.set("doomed", "yes");
    std::vector<float> gradient(kDense / kServers);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = i % kPieces == static_cast<std::size_t>(piece.step) ? -1 : 0;
    }
    Request head;
    head.header.generation = 1;
    head.header.worker = scenario_.worker;
    head.header.push = true;
    head.header.sequence = 1;
    head.header.lr = 1;
    rpc::Bytes message;
    write_request(message, head);
    cluster::PrefixStore view(store, "1/");
    const auto address = server_address_from(view.get(server_key(1), Deadline::in(kTimeout)));
    rpc::RpcClient(address.rpc, view.pass(),
                   worker_member(scenario_.worker, head.header.generation))
        .call({message, std::as_bytes(std::span(gradient))}, Deadline::in(kTimeout));
    ::raise(SIGKILL);
  }

  /// False where a server is lost. `before_push` is told of how many pushes came before.
  bool push_all(ServerClient& client, const std::function<void(int pushes)>& before_push) const {
    try {
      Exchange pull;
      pull.pull = true;
      client.exchange(pull);
      Exchange claim;
      claim.claim = true;
      std::optional<cluster::Claim> piece = client.exchange(claim).claim;
      for (int pushes = 0; piece; ++pushes) {
        before_push(pushes);
        for (std::size_t i = 0; i < kDense; ++i) {
          client.outgoing()[i] = i % kPieces == static_cast<std::size_t>(piece->step) ? -1 : 0;
        }
        Exchange push = pull;
        push.push = true;
        push.lr = 1;
        push.pieces = {*piece};
        push.claim = scenario_.consistency == Consistency::async;
        piece = client.exchange(push).claim;
        if (!piece) piece = client.exchange(claim).claim;
      }
      Exchange finished;
      finished.finished = true;
      client.exchange(finished);
      return true;
    } catch (const Error& error) {
      require(error.code() == ErrorCode::peer_lost, error.what());
      return false;
    }
  }

  void check() const {
    std::vector<ShardRecord> records;
    for (const LastingMemory& memory : memories_) {
      const auto shard = ShardMemory::find(memory.bytes());
      records.push_back(shard->record());
      const auto values = shard->dense().now.values;
      const auto lacking = std::ranges::count(values, 0.0F);
      const auto missing = static_cast<std::ptrdiff_t>(records.back().counts.missing);
      require(lacking == missing * std::ssize(values) / static_cast<std::ptrdiff_t>(kPieces),
              "a piece of work was never applied, and nobody says so");
      require(records.back().counts.applied + records.back().counts.missing == kPieces,
              "a push was applied twice or lost");
      const bool once = std::ranges::all_of(values, [](float v) { return v == 1 || v == 0; });
      require(once || scenario_.consistency == Consistency::quorum, "a push was applied twice");
    }
    const bool died_between = scenario_.worker >= 0;
    const bool first_lacks = died_between && scenario_.skips_first;
    const bool second_lacks = died_between && !scenario_.skips_first;
    require(records[0].counts.missing == (first_lacks ? 1 : 0), "server 0 lacks other pushes");
    require(records[1].counts.missing == (second_lacks ? 1 : 0), "server 1 lacks other pushes");
    const bool same = records[0].counts.fingerprint == records[1].counts.fingerprint;
    require(same != died_between, "the servers have applied different pushes");
  }

  Scenario scenario_;
  std::vector<LastingMemory> memories_;
  std::array<int, 2> go_ = {-1, -1};
};

struct Case {
  const char* name;
  Scenario scenario;
};
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class PushAgainDeathTest : public testing::TestWithParam<Case> {};

TEST_P(PushAgainDeathTest, EveryPushIsOnEveryServerOnce) {
  run_in_new_process([] { TwoGroups(GetParam().scenario).run(); });
}

constexpr auto kAsync = Consistency::async;
constexpr auto kQuorum = Consistency::quorum;

INSTANTIATE_TEST_SUITE_P(
    Deaths, PushAgainDeathTest,
    testing::Values(
        Case{"first_before_update", {kAsync, 0, -1, "server.before-update=kill@9"}},
        Case{"first_before_commit", {kAsync, 0, -1, "server.before-commit=kill@9"}},
        Case{"first_before_answer", {kAsync, 0, -1, "server.before-answer=kill@9"}},
        Case{"first_after_handing_out", {kAsync, 0, -1, "server.after-handing-out=kill@9"}},
        Case{"second_before_update", {kAsync, 1, -1, "server.before-update=kill@9"}},
        Case{"second_in_update", {kAsync, 1, -1, "server.in-update=kill@9"}},
        Case{"second_before_commit", {kAsync, 1, -1, "server.before-commit=kill@9"}},
        Case{"second_before_answer", {kAsync, 1, -1, "server.before-answer=kill@9"}},
        Case{"first_by_grpc", {kAsync, 0, -1, "server.before-commit=kill@9", false}},
        Case{"second_by_grpc", {kAsync, 1, -1, "server.before-update=kill@9", false}},
        Case{"quorum_first", {kQuorum, 0, -1, "server.before-update=kill@5"}},
        Case{"quorum_second", {kQuorum, 1, -1, "server.before-answer=kill@5"}},
        Case{"worker_between_servers", {kAsync, -1, 1, "worker.between-pushes=kill@5"}},
        Case{"worker_between_servers_quorum", {kQuorum, -1, 0, "worker.between-pushes=kill@5"}},
        Case{"worker_past_first", {kAsync, -1, 1, "", false, true}},
        Case{"worker_past_first_quorum", {kQuorum, -1, 1, "", false, true}},
        Case{"worker_past_first_and_second_server",
             {kAsync, 1, 1, "server.before-telling-of-a-loss=kill", false, true}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cohort::server
