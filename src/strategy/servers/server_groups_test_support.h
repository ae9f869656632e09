#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "server/door/run_server.h"
#include "server/memory/lasting_memory.h"
#include "server/shard/reconcile_shards.h"
#include "strategy/servers/server_rule.h"
#include "strategy/word_group_test_support.h"
#include "transport/engine_test_support.h"
#include "transport/inproc/inproc.h"

namespace cohort::strategy {

/// The servers' memories, for as many groups as come.
class ServerHouse {
 public:
  explicit ServerHouse(const Job& job) : job_(job) {
    const auto net = std::make_shared<WordNet>(0);
    const auto model = wrap(net);
    for (const std::size_t bytes : server_memory_bytes(job, *model)) memories_.emplace_back(bytes);
  }

  /// Before the servers of a group start, when there are none.
  void reconcile() {
    std::vector<std::span<std::byte>> memories;
    for (const server::LastingMemory& memory : memories_) memories.push_back(memory.bytes());
    if (!memories.empty()) server::reconcile_shards(memories, options(0, GroupRun()).rules);
  }

  server::ServerOptions options(int server, const GroupRun& run) const {
    server::ServerOptions options = server_options(
        job_, server,
        {.workers = run.workers, .generation = run.generation, .steps = job_.train.steps});
    options.memory = memories_[static_cast<std::size_t>(server)].bytes();
    return options;
  }

  /// Servers of a group; they end with it.
  std::vector<std::jthread> serve(const GroupRun& run, cluster::Store& store) {
    reconcile();
    std::vector<std::jthread> threads;
    for (int server = 0; server < job_.cluster.servers; ++server) {
      threads.emplace_back([options = options(server, run), &store] {
        try {
          server::run_server(options, store);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "server " << options.server << ": " << error.what();
        }
      });
    }
    return threads;
  }

 private:
  Job job_;
  std::vector<server::LastingMemory> memories_;
};

/// Workers that a user has told to use sockets.
class SocketEngine : public transport::ApartEngine {
 public:
  explicit SocketEngine(std::unique_ptr<transport::Engine> engine)
      : ApartEngine(std::move(engine), [](transport::EngineFacts& facts) {
          facts.name = "sockets";
          facts.address = "127.0.0.1";
          facts.sends_in_background = true;
        }) {}
};

/// Trains one group, with servers where the job has some, and returns what each worker ends with.
inline std::vector<GroupEnd> train_group(const GroupRun& run, ServerHouse& house) {
  transport::InprocHub hub(run.workers);
  cluster::MemoryStore store;
  std::vector<GroupEnd> ends(static_cast<std::size_t>(run.workers));
  std::vector<std::jthread> threads = house.serve(run, store);
  for (int rank = 0; rank < run.workers; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        std::unique_ptr<transport::Engine> engine = hub.engine(rank);
        if (run.by_grpc) engine = std::make_unique<SocketEngine>(std::move(engine));
        ends[static_cast<std::size_t>(rank)] = GroupWorker(run, *engine, store).train();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "worker " << rank << ": " << error.what();
      }
    });
  }
  threads.clear();
  return ends;
}

inline std::vector<const tensor::TrainingState*> carried(const std::vector<GroupEnd>& ends) {
  std::vector<const tensor::TrainingState*> states;
  for (const GroupEnd& end : ends) states.push_back(&end.carried);
  return states;
}

}  // namespace cohort::strategy
