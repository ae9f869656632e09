#pragma once

// Servers of one run as threads, and workers beside them: both ends with doors, links and gRPC in
// one process.

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "server/client/server_client.h"
#include "server/door/run_server.h"

namespace cohort::server {

/// A first model without slots.
inline ServerModel model_of(std::vector<float> dense, std::vector<std::vector<float>> tables = {}) {
  ServerModel model;
  model.dense.values = std::move(dense);
  for (auto& table : tables) model.tables.push_back({.values = std::move(table)});
  return model;
}

constexpr auto kTestTimeout = std::chrono::seconds(30);

inline ServerOptions server_options(int server, int workers, ShardRules::Consistency consistency) {
  ServerOptions options;
  options.server = server;
  options.rules.workers = workers;
  options.rules.consistency = consistency;
  options.rules.optimizer.kind = "sgd";
  options.timeout = kTestTimeout;
  options.cores = 2;
  return options;
}

inline ClientOptions client_options(int worker, int servers, std::size_t dense, bool memory) {
  ClientOptions options;
  options.worker = worker;
  options.servers = servers;
  options.dense = dense;
  options.share_memory = memory;
  options.cores = 2;
  options.timeout = kTestTimeout;
  return options;
}

/// Servers of one run, as threads.
class Servers {
 public:
  Servers(
      int count, int workers, ShardRules::Consistency consistency,
      const std::function<void(ServerOptions&)>& change = [](ServerOptions&) {}) {
    results_.resize(static_cast<std::size_t>(count));
    for (int server = 0; server < count; ++server) {
      ServerOptions options = server_options(server, workers, consistency);
      change(options);
      threads_.emplace_back([this, server, options] {
        results_[static_cast<std::size_t>(server)] = run_server(options, store);
      });
    }
  }

  /// Waits for their end.
  const std::vector<cluster::ServerReport>& results() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
    return results_;
  }
  ~Servers() { results(); }

  cluster::MemoryStore store;

 private:
  std::vector<cluster::ServerReport> results_;
  std::vector<std::thread> threads_;
};

inline void run_workers(int workers, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&body, worker] { body(worker); });
  }
  for (std::thread& thread : threads) thread.join();
}

inline Exchange push_and_pull() {
  Exchange exchange;
  exchange.push = exchange.pull = true;
  exchange.lr = 1;
  return exchange;
}

inline Exchange pull_only() {
  Exchange exchange;
  exchange.pull = true;
  return exchange;
}

}  // namespace cohort::server
