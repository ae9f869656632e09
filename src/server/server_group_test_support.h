#pragma once

// For tests that kill servers at a failpoint and go on from their lasting memory: all servers of a
// run without doors or gRPC, driven by the scripts of shard_modes_test_support.h in a child that
// dies.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "base/failpoint.h"
#include "optimizer/optimizer.h"
#include "server/memory/lasting_memory.h"
#include "server/shard/reconcile_shards.h"
#include "server/shard/shard_modes_test_support.h"

namespace cohort::server {

/// All servers of a run in one process, which a kill ends at once.
class ServerGroup {
 public:
  ServerGroup(const Mode& mode, int servers, bool replicated = false)
      : mode_(mode), servers_(servers) {
    for (int server = 0; server < servers; ++server) {
      memories_.emplace_back(bytes_of(server));
      // Of the server before.
      if (replicated) replicas_.emplace_back(bytes_of((server + servers - 1) % servers));
    }
  }

  ReconciledShards reconcile() const {
    return reconcile_shards(spans_of(memories_), mode_.rules, spans_of(replicas_));
  }

  void lose_memory_of(int server) {
    memories_[static_cast<std::size_t>(server)] = LastingMemory(bytes_of(server));
  }

  /// Goes on from where the memories are. In step, all make one update before one makes the next.
  void run() const {
    for (bool all_done = false; !all_done;) {
      all_done = true;
      for (int server = 0; server < servers_; ++server) all_done = step(server) && all_done;
    }
  }

  /// The floats of all servers, with their slots.
  std::vector<std::vector<float>> floats() const {
    std::vector<std::vector<float>> all;
    for (int server = 0; server < servers_; ++server) {
      const Shard shard(mode_.rules, *find(server), nullptr);
      all.emplace_back(shard.floats());
      shard.copy_to(all.back());
    }
    return all;
  }

  std::optional<ShardMemory> find(int server) const {
    return ShardMemory::find(memories_[static_cast<std::size_t>(server)].bytes());
  }

 private:
  std::size_t bytes_of(int server) const {
    return shard_memory_bytes(kModel, servers_, server, mode_.rules.optimizer);
  }

  static std::vector<std::span<std::byte>> spans_of(const std::vector<LastingMemory>& memories) {
    std::vector<std::span<std::byte>> spans;
    for (const LastingMemory& memory : memories) spans.push_back(memory.bytes());
    return spans;
  }

  /// As if by gRPC.
  void replicate(Shard& shard, int server) const {
    if (replicas_.empty()) return;
    const auto copy = replicas_[static_cast<std::size_t>((server + 1) % servers_)].bytes();
    shard.replicate_by([copy](const ShardMemory& memory, ReplicaMessage::Kind kind) {
      std::vector<std::byte> bytes;
      const ReplicaMessage message(memory, kind);
      for (const auto part : message.parts()) {
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
      take_replica(bytes, copy);
    });
  }

  /// Whether the server has made all updates.
  bool step(int server) const {
    auto memory = find(server);
    if (!memory) {
      begin(server);
      return false;
    }
    const Place place{memory->record().version, memory->record().kept_pushes};
    if (place.version == kUpdates) return true;
    Shard shard(mode_.rules, std::move(*memory), nullptr);
    replicate(shard, server);
    mode_.script(shard, place);
    return false;
  }

  void begin(int server) const {
    const ShardShape shape = shard_shape(kModel, servers_, server);
    const std::size_t slots = optimizer::make_optimizer(mode_.rules.optimizer)->slots().size();
    Shard shard(mode_.rules,
                ShardMemory(shape, slots, memories_[static_cast<std::size_t>(server)].bytes()),
                nullptr);
    replicate(shard, server);
    Random random(7, static_cast<std::uint64_t>(server));
    const std::vector<float> floats = random_floats(shape.floats(), random);
    ModelMessage model;
    model.shape = shape;
    model.floats = floats;
    shard.initialise(model);
  }

  Mode mode_;
  int servers_;
  std::vector<LastingMemory> memories_;
  std::vector<LastingMemory> replicas_;
};

/// Runs in a child with these failpoints; true when it was killed.
inline bool run_and_die(const ServerGroup& group, const std::string& failpoints) {
  const pid_t child = ::fork();
  if (child == 0) {
    set_failpoints(failpoints);
    try {
      group.run();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "failpoints " << failpoints;
  return WIFSIGNALED(status);
}

}  // namespace cohort::server
