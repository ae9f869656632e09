// Servers and workers that are processes, and die.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <future>

#include "server/client/server_client.h"
#include "server/client/server_link.h"
#include "server/door/run_server.h"
#include "server/process_test_support.h"
#include "server/server_test_support.h"

namespace cohort::server {
namespace {

constexpr std::size_t kDense = 100;
constexpr int kSteps = 20;

ServerOptions server_with_quorum(int server, int workers, ShardRules::Consistency consistency) {
  ServerOptions options = server_options(server, workers, consistency);
  options.rules.quorum = 2;
  return options;
}

ClientOptions client_of(int worker, int servers, bool memory) {
  return client_options(worker, servers, kDense, memory);
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

std::future<cluster::ServerReport> serve(const cluster::StoreServer& store,
                                         const ServerOptions& options) {
  return std::async(std::launch::async, [&store, options] {
    cluster::SocketStore mine(store.endpoint(), store.pass(), Deadline::in(kTestTimeout),
                              server_member(options.server, 0));
    return run_server(options, mine);
  });
}

/// Worker 1 of 2 kills itself after `kSteps` pushes.
pid_t start_victim(const cluster::StoreServer& store, bool memory) {
  return start_process(store, worker_member(1, 0), [memory](cluster::Store& mine) {
    ServerClient client(client_of(1, 1, memory), mine);
    push_ones(client, kSteps);
    ::raise(SIGKILL);
  });
}

/// Worker 0 goes on, and the server ends after it.
void lose_a_worker(ShardRules::Consistency consistency) {
  cluster::StoreServer store(cluster::Pass::draw());
  const pid_t victim = start_victim(store, true);
  store.start();
  auto server = serve(store, server_with_quorum(0, 2, consistency));
  cluster::SocketStore mine(store.endpoint(), store.pass(), Deadline::in(kTestTimeout), {});
  ServerClient client(client_of(0, 1, true), mine);
  client.initialise(model_of(std::vector<float>(kDense)));
  push_ones(client, 2 * kSteps);
  require(signal_that_ended(victim) == SIGKILL, "the worker was not killed");
  push_ones(client, kSteps);
  client.close();
  const cluster::ServerReport result = server.get();
  require(result.counts.applied == 4 * kSteps, "pushes are missing");
  require(result.version == (consistency == ShardRules::Consistency::async ? 4U : 3U) * kSteps,
          "there are not as many updates as there should be");
}

/// In step nothing goes on: worker 0 is told who is gone, and no step is half made.
void lose_a_worker_in_step(bool memory) {
  cluster::StoreServer store(cluster::Pass::draw());
  const pid_t victim = start_victim(store, memory);
  store.start();
  auto server = serve(store, server_with_quorum(0, 2, ShardRules::Consistency::sync));
  cluster::SocketStore mine(store.endpoint(), store.pass(), Deadline::in(kTestTimeout), {});
  ServerClient client(client_of(0, 1, memory), mine);
  client.initialise(model_of(std::vector<float>(kDense)));
  try {
    push_ones(client, 2 * kSteps);
    require(false, "a step was made without the killed worker");
  } catch (const Error& error) {
    require(error.code() == ErrorCode::peer_lost && error.rank() == 1, error.what());
  }
  require(signal_that_ended(victim) == SIGKILL, "the worker was not killed");
  require(client.incoming()[kDense - 1] == -2.0F * kSteps, "the sum is wrong");
  // What the server has can still be read.
  ServerModel model;
  ServerClient(client_of(0, 1, memory), mine).read_model(model);
  require(model.version == kSteps, "a step was half made");
  client.close();
  server.get();
}

/// Returns when a push of worker 1 waits at the server: then it refuses everything else of it.
void wait_until_its_push_waits(cluster::Store& store) {
  const auto server = server_address_from(store.get(server_key(0), Deadline::in(kTestTimeout)));
  rpc::RpcClient client(server.rpc, store.pass(), worker_member(1, 0));
  Request other;
  other.header.worker = 1;
  for (other.number = 1;; ++other.number) {
    rpc::Bytes message;
    write_request(message, other);
    try {
      client.call({message}, Deadline::in(kTestTimeout));
    } catch (const Error& error) {
      return require(std::string(error.what()).find("not answered yet") != std::string::npos,
                     error.what());
    }
  }
}

/// Worker 1 is killed in the middle of a call. Its push may still count, in a whole step.
void lose_a_worker_in_its_call() {
  cluster::StoreServer store(cluster::Pass::draw());
  const pid_t victim = start_process(store, worker_member(1, 0), [](cluster::Store& mine) {
    ServerClient client(client_of(1, 1, false), mine);
    push_ones(client, kSteps + 1);
  });
  store.start();
  auto server = serve(store, server_with_quorum(0, 2, ShardRules::Consistency::sync));
  cluster::SocketStore mine(store.endpoint(), store.pass(), Deadline::in(kTestTimeout), {});
  ServerClient client(client_of(0, 1, false), mine);
  client.initialise(model_of(std::vector<float>(kDense)));
  push_ones(client, kSteps);
  wait_until_its_push_waits(mine);
  ::kill(victim, SIGKILL);
  require(signal_that_ended(victim) == SIGKILL, "the worker was not killed");
  try {
    push_ones(client, 2);
    require(false, "a step was made without the killed worker");
  } catch (const Error& error) {
    require(error.code() == ErrorCode::peer_lost && error.rank() == 1, error.what());
  }
  client.close();
  const cluster::ServerReport result = server.get();
  require(result.version == kSteps || result.version == kSteps + 1, "a step is missing");
  require(client.incoming()[0] == -2.0F * static_cast<float>(result.version), "the sum is wrong");
}

/// Worker 1 is killed while its push waits for others, and server 1 can say nothing of it: server 0
/// ends with its group, and what has come of the worker stays.
void lose_a_worker_when_another_server_is_silent() {
  cluster::StoreServer store(cluster::Pass::draw());
  const pid_t victim = start_process(store, worker_member(1, 0), [](cluster::Store& mine) {
    ServerClient client(client_of(1, 1, false), mine);
    push_ones(client, 1);
  });
  store.start();
  ServerOptions options = server_with_quorum(0, 2, ShardRules::Consistency::quorum);
  options.servers = 2;
  options.board = cluster::WorkBoard::Options{.workers = 2, .end_step = kSteps};
  auto server = serve(store, options);
  cluster::SocketStore mine(store.endpoint(), store.pass(), Deadline::in(kTestTimeout), {});
  cluster::SocketStore(store.endpoint(), store.pass(), Deadline::in(kTestTimeout),
                       server_member(1, 0))
      .set(server_key(1),
           to_text(ServerAddress{.host = {}, .pid = ::getpid(), .rpc = "unix:nobody"}));
  ServerClient client(client_of(0, 1, false), mine);
  client.initialise(model_of(std::vector<float>(kDense)));
  wait_until_its_push_waits(mine);
  ::kill(victim, SIGKILL);
  require(signal_that_ended(victim) == SIGKILL, "the worker was not killed");
  const cluster::ServerReport result = server.get();
  require(result.counts.applied == 1, "a push that had come was forgotten");
}

/// Server 1 is killed; the worker's next exchange names it, and server 0 ends when it leaves.
void lose_a_server(bool memory) {
  cluster::StoreServer store(cluster::Pass::draw());
  const pid_t victim = start_process(store, server_member(1, 0), [](cluster::Store& mine) {
    run_server(server_with_quorum(1, 1, ShardRules::Consistency::sync), mine);
  });
  store.start();
  auto server = serve(store, server_with_quorum(0, 1, ShardRules::Consistency::sync));
  cluster::SocketStore mine(store.endpoint(), store.pass(), Deadline::in(kTestTimeout), {});
  ServerClient client(client_of(0, 2, memory), mine);
  client.initialise(model_of(std::vector<float>(kDense)));
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
  cluster::StoreServer store(cluster::Pass::draw());
  std::vector<pid_t> tasks;
  for (const int server : {0, 1}) {
    tasks.push_back(start_process(store, server_member(server, 0), [server](cluster::Store& mine) {
      run_server(server_with_quorum(server, 2, ShardRules::Consistency::sync), mine);
    }));
  }
  for (const int worker : {0, 1}) {
    tasks.push_back(
        start_process(store, worker_member(worker, 0), [worker, memory](cluster::Store& mine) {
          ServerClient client(client_of(worker, 2, memory), mine);
          if (worker == 0) client.initialise(model_of(std::vector<float>(kDense)));
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

TEST(ServerProcessDeathTest, AQuorumGoesOnWithoutAKilledWorker) {
  run_in_new_process([] { lose_a_worker(ShardRules::Consistency::quorum); });
}

TEST(ServerProcessDeathTest, InStepAKilledWorkerIsNamedByMemory) {
  run_in_new_process([] { lose_a_worker_in_step(true); });
}

TEST(ServerProcessDeathTest, InStepAKilledWorkerIsNamedByGrpc) {
  run_in_new_process([] { lose_a_worker_in_step(false); });
}

TEST(ServerProcessDeathTest, InStepAWorkerKilledInItsCallIsNamed) {
  run_in_new_process([] { lose_a_worker_in_its_call(); });
}

TEST(ServerProcessDeathTest, WhatHasComeOfALostWorkerStaysWhereAnotherServerIsSilent) {
  run_in_new_process([] { lose_a_worker_when_another_server_is_silent(); });
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
}  // namespace cohort::server
