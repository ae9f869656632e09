// Copies of shards on other servers.

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "server/server_group_test_support.h"
#include "server/server_test_support.h"

namespace cohort::server {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ReplicatedShards : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, ReplicatedShards, testing::ValuesIn(modes()),
                         [](const auto& test) { return test.param.name; });

TEST_P(ReplicatedShards, GoOnFromTheCopyWhenTheirMemoryIsLost) {
  const ServerGroup quiet(GetParam(), 3);
  quiet.run();
  const auto expected = quiet.floats();
  for (const std::string point : {"server.before-update", "server.in-update",
                                  "server.before-commit", "server.before-answer"}) {
    for (const int passing : {2, 5, 9}) {
      SCOPED_TRACE(point + " " + std::to_string(passing));
      ServerGroup group(GetParam(), 3, true);
      run_and_die(group, point + "=kill@" + std::to_string(passing));
      group.lose_memory_of(passing % 3);
      group.reconcile();
      ASSERT_FALSE(run_and_die(group, ""));
      ASSERT_EQ(group.floats(), expected);
      group.lose_memory_of(1);
      ASSERT_TRUE(group.reconcile().have_model) << "all copies are there";
      ASSERT_EQ(group.floats(), expected);
    }
  }
}

TEST(ReplicaMessage, IsRefusedWhereItDoesNotFollowTheCopy) {
  const ServerGroup group(modes().front(), 1);
  group.run();
  const auto memory = group.find(0);
  const LastingMemory copy(ShardMemory::bytes_needed(memory->shape(), memory->slots()));
  const auto bytes_of = [&](ReplicaMessage::Kind kind) {
    std::vector<std::byte> bytes;
    const ReplicaMessage message(*memory, kind);
    for (const auto part : message.parts()) {
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
  };
  const auto update = bytes_of(ReplicaMessage::Kind::update);
  EXPECT_THAT([&] { take_replica(update, copy.bytes()); },
              ThrowsMessage<Error>(HasSubstr("does not lead to version 6")));
  const auto whole = bytes_of(ReplicaMessage::Kind::whole);
  take_replica(whole, copy.bytes());
  EXPECT_EQ(ShardMemory::find(copy.bytes())->record().version, kUpdates);
  EXPECT_THROW(take_replica(update, copy.bytes()), Error) << "it has that one already";
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{50}, whole.size() / 2, whole.size() - 4}) {
    EXPECT_THROW(take_replica(std::span(whole).first(size), copy.bytes()), Error) << size;
  }
}

// Whatever number of a message is one beyond all memory: nothing is written outside the copy's.
TEST(ReplicaMessage, SizesThatOverflowWriteNothingOutsideTheCopy) {
  constexpr std::size_t kHeadBytes = 2048;
  constexpr std::size_t kPage = 4096;
  const ServerGroup group(modes().front(), 1);
  group.run();
  const auto memory = group.find(0);
  const std::size_t size = ShardMemory::bytes_needed(memory->shape(), memory->slots());
  std::vector<std::byte> whole;
  const ReplicaMessage message(*memory, ReplicaMessage::Kind::whole);
  for (const auto part : message.parts()) whole.insert(whole.end(), part.begin(), part.end());
  const LastingMemory around(size + 2 * kPage);
  constexpr std::byte kCanary{0xA5};
  const auto before = around.bytes().first(kPage);
  const auto behind = around.bytes().last(kPage);
  std::ranges::fill(before, kCanary);
  std::ranges::fill(behind, kCanary);
  const auto copy = around.bytes().subspan(kPage, size);
  for (std::size_t at = 0; at + 8 <= std::min(whole.size(), kHeadBytes); at += 4) {
    for (const std::uint64_t huge :
         {~std::uint64_t{0}, std::uint64_t{1} << 62, (std::uint64_t{1} << 62) + 1,
          std::uint64_t{1} << 61, std::uint64_t{0xFFFFFFFF}}) {
      auto wrong = whole;
      std::memcpy(wrong.data() + at, &huge, sizeof huge);
      try {
        take_replica(wrong, copy);
      } catch (const Error&) {
      }
      ASSERT_TRUE(std::ranges::all_of(before, [](std::byte byte) { return byte == kCanary; }))
          << at;
      ASSERT_TRUE(std::ranges::all_of(behind, [](std::byte byte) { return byte == kCanary; }))
          << at;
    }
  }
}

/// Two servers on threads that keep each other's copies.
struct ReplicatedServers {
  explicit ReplicatedServers(ShardRules::Consistency consistency_) : consistency(consistency_) {
    for (int server = 0; server < 2; ++server) {
      memories.emplace_back(bytes_of(server));
      replicas.emplace_back(bytes_of(1 - server));
    }
  }

  static std::size_t bytes_of(int server) {
    return shard_memory_bytes({.dense = kFloats}, 2, server, {.kind = "sgd"});
  }

  static std::span<std::byte> of(const std::vector<LastingMemory>& all, int server) {
    return all[static_cast<std::size_t>(server)].bytes();
  }

  /// Both workers push `times` times, then all ends.
  void run(int times, bool has_model) {
    Servers running(2, 2, consistency, [&](ServerOptions& options) {
      options.replicas = options.servers = 2;
      options.message_bytes = 1;  // What a copy needs is allowed all the same.
      options.memory = of(memories, options.server);
      options.replica_memory = of(replicas, options.server);
    });
    run_workers(2, [&](int worker) {
      ServerClient client(client_options(worker, 2, kFloats, true), running.store);
      if (worker == 0) {
        EXPECT_EQ(client.has_model(), has_model);
        if (!has_model) client.initialise(model_of(std::vector<float>(kFloats)));
      }
      client.exchange(pull_only());
      for (int i = 0; i < times; ++i) {
        std::ranges::fill(client.outgoing(), -1.0F);
        client.exchange(push_and_pull());
      }
      Exchange finished;
      finished.finished = true;
      client.exchange(finished);
    });
  }

  static constexpr std::size_t kFloats = 1000;
  ShardRules::Consistency consistency;
  std::vector<LastingMemory> memories;
  std::vector<LastingMemory> replicas;
};

TEST(ReplicatedServers, LoseNoPushThatWasAcknowledged) {
  for (const auto consistency : {ShardRules::Consistency::sync, ShardRules::Consistency::async}) {
    ReplicatedServers servers(consistency);
    ShardRules rules;
    rules.consistency = consistency;
    servers.run(10, false);
    for (const int lost : {0, 1}) {
      servers.memories[static_cast<std::size_t>(lost)] =
          LastingMemory(ReplicatedServers::bytes_of(lost));
      const std::span<std::byte> memories[] = {ReplicatedServers::of(servers.memories, 0),
                                               ReplicatedServers::of(servers.memories, 1)};
      const std::span<std::byte> replicas[] = {ReplicatedServers::of(servers.replicas, 0),
                                               ReplicatedServers::of(servers.replicas, 1)};
      EXPECT_TRUE(reconcile_shards(memories, rules, replicas).have_model);
      servers.run(10, true);
    }
    for (int server = 0; server < 2; ++server) {
      const auto memory = ShardMemory::find(ReplicatedServers::of(servers.memories, server));
      EXPECT_THAT(memory->dense().now.values, Each(60.0F));
    }
  }
}

TEST(ReplicatedServers, NeedMemoryThatLastsAndAnotherServer) {
  cluster::MemoryStore store;
  ServerOptions options = server_options(0, 1, ShardRules::Consistency::sync);
  options.replicas = 2;
  EXPECT_THAT([&] { run_server(options, store); },
              ThrowsMessage<Error>(HasSubstr("lasting memory")));
}

}  // namespace
}  // namespace cohort::server
