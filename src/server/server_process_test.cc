// Servers and workers that are processes, and die.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <future>

#include "cluster/store_server.h"
#include "cluster/tcp_store.h"
#include "server/run_server.h"
#include "server/server_client.h"

namespace cohort {
namespace {

constexpr auto kTimeout = std::chrono::seconds(30);
constexpr std::size_t kDense = 100;
constexpr int kSteps = 20;

/// A process that has used gRPC must not fork, so every scenario runs in a fresh process, which is
/// what a death test of the style "threadsafe" is: it starts this program anew. There `scenario`
/// forks first and uses gRPC then. What it throws is its failure.
void run_in_new_process(const std::function<void()>& scenario) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        try {
          scenario();
        } catch (const std::exception& error) {
          std::fprintf(stderr, "failed: %s\n", error.what());
          ::_exit(1);
        }
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "");
}

void require(bool true_if_right, const std::string& what) {
  if (!true_if_right) throw std::runtime_error(what);
}

/// Runs `body` with the run's store in a child, which ends without the program's exit handlers.
pid_t start_process(const StoreServer& store, const std::function<void(Store&)>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  try {
    TcpStore mine("127.0.0.1", store.port(), Deadline::in(kTimeout));
    body(mine);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child failed: %s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

/// How it ended: a signal, or 0.
int signal_that_ended(pid_t pid) {
  int status = 0;
  require(::waitpid(pid, &status, 0) == pid, "the child cannot be waited for");
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

ServerOptions server_options(int server, int workers, ShardRules::Consistency consistency) {
  ServerOptions options;
  options.server = server;
  options.rules.workers = workers;
  options.rules.consistency = consistency;
  options.timeout = kTimeout;
  return options;
}

ClientOptions client_options(int worker, int servers, bool memory) {
  ClientOptions options;
  options.worker = worker;
  options.servers = servers;
  options.dense = kDense;
  options.share_memory = memory;
  options.timeout = kTimeout;
  return options;
}

void push_ones(ServerClient& client, int times) {
  Exchange exchange;
  exchange.push = exchange.pull = true;
  exchange.lr = 1;
  for (int i = 0; i < times; ++i) {
    std::ranges::fill(client.outgoing(), 1.0F);
    client.exchange(exchange);
  }
}

std::future<ServerResult> serve(const StoreServer& store, const ServerOptions& options) {
  return std::async(std::launch::async, [&store, options] {
    TcpStore mine("127.0.0.1", store.port(), Deadline::in(kTimeout));
    return run_server(options, mine);
  });
}

/// Worker 1 kills itself after `kSteps` pushes; worker 0 goes on, and the server ends after it.
void lose_a_worker(ShardRules::Consistency consistency) {
  StoreServer store("127.0.0.1", 0);
  const pid_t victim = start_process(store, [](Store& mine) {
    ServerClient client(client_options(1, 1, true), mine);
    push_ones(client, kSteps);
    ::raise(SIGKILL);
  });
  store.start();
  auto server = serve(store, server_options(0, 2, consistency));
  TcpStore mine("127.0.0.1", store.port(), Deadline::in(kTimeout));
  ServerClient client(client_options(0, 1, true), mine);
  client.initialise(std::vector<float>(kDense), {});
  push_ones(client, 2 * kSteps);
  require(signal_that_ended(victim) == SIGKILL, "the worker was not killed");
  push_ones(client, kSteps);
  client.close();
  const ServerResult result = server.get();
  require(result.counts.applied == 4 * kSteps, "pushes are missing");
  require(client.incoming()[kDense - 1] == -4.0F * kSteps, "the sum is wrong");
}

/// Server 1 is killed; the worker's next exchange names it, and server 0 ends when it leaves.
void lose_a_server(bool memory) {
  StoreServer store("127.0.0.1", 0);
  const pid_t victim = start_process(store, [](Store& mine) {
    run_server(server_options(1, 1, ShardRules::Consistency::sync), mine);
  });
  store.start();
  auto server = serve(store, server_options(0, 1, ShardRules::Consistency::sync));
  TcpStore mine("127.0.0.1", store.port(), Deadline::in(kTimeout));
  ServerClient client(client_options(0, 2, memory), mine);
  client.initialise(std::vector<float>(kDense), {});
  push_ones(client, kSteps);
  ::kill(victim, SIGKILL);
  require(signal_that_ended(victim) == SIGKILL, "the server was not killed");
  for (int i = 0; i < 2; ++i) {
    try {
      push_ones(client, 1);
      require(false, "a dead server answered");
    } catch (const Error& error) {
      require(error.code() == ErrorCode::peer_lost, error.what());
      const std::string text = error.what();
      require(text.find("server 1") != std::string::npos &&
                  text.find(std::to_string(victim)) != std::string::npos,
              text);
    }
  }
  client.close();
  require(server.get().version >= kSteps, "server 0 has not made all updates");
}

/// All in processes of their own, as in a real run.
void train_together(bool memory) {
  StoreServer store("127.0.0.1", 0);
  std::vector<pid_t> tasks;
  for (const int server : {0, 1}) {
    tasks.push_back(start_process(store, [server](Store& mine) {
      run_server(server_options(server, 2, ShardRules::Consistency::sync), mine);
    }));
  }
  for (const int worker : {0, 1}) {
    tasks.push_back(start_process(store, [worker, memory](Store& mine) {
      ServerClient client(client_options(worker, 2, memory), mine);
      if (worker == 0) client.initialise(std::vector<float>(kDense), {});
      push_ones(client, kSteps);
      const auto right = [](float value) { return value == -2.0F * kSteps; };
      require(std::ranges::all_of(client.incoming(), right), "the sum is wrong");
    }));
  }
  store.start();
  for (const pid_t task : tasks) {
    int status = -1;
    require(::waitpid(task, &status, 0) == task && status == 0, "a task failed");
  }
}

TEST(ServerProcessDeathTest, AsyncGoesOnWithoutAKilledWorker) {
  run_in_new_process([] { lose_a_worker(ShardRules::Consistency::async); });
}

TEST(ServerProcessDeathTest, SyncGoesOnWithoutAKilledWorker) {
  run_in_new_process([] { lose_a_worker(ShardRules::Consistency::sync); });
}

TEST(ServerProcessDeathTest, AKilledServerIsNamedByMemory) {
  run_in_new_process([] { lose_a_server(true); });
}

TEST(ServerProcessDeathTest, AKilledServerIsNamedByGrpc) {
  run_in_new_process([] { lose_a_server(false); });
}

TEST(ServerProcessDeathTest, ProcessesTrainTogetherByMemory) {
  run_in_new_process([] { train_together(true); });
}

TEST(ServerProcessDeathTest, ProcessesTrainTogetherByGrpc) {
  run_in_new_process([] { train_together(false); });
}

}  // namespace
}  // namespace cohort
