// Pushes whose answer was lost with a server: made again in the next group, they are on every
// server once.

#include <gmock/gmock.h>

#include <optional>

#include "server/memory/lasting_memory.h"
#include "server/shard/reconcile_shards.h"
#include "server/shard/shard_test_support.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Consistency = ShardRules::Consistency;

constexpr int kServers = 2, kWorkers = 2;
constexpr std::int64_t kSteps = 8;

/// The shards of two servers in memory that outlives them, the first with a board of work, one
/// group of workers after the other.
class TwoServers {
 public:
  explicit TwoServers(Consistency consistency, int quorum = 1)
      : rules_(rules_of(consistency, kWorkers)) {
    rules_.quorum = quorum;
    for (int server = 0; server < kServers; ++server) {
      memories_.emplace_back(ShardMemory::bytes_needed({.dense = 2}, 0));
    }
    start();
    for (const auto& shard : shards_) initialise(*shard, std::vector<float>{0, 10}, {});
  }

  /// All servers are gone, wherever they stood, and those of the next group take their place.
  void die() {
    shards_.clear();
    std::vector<std::span<std::byte>> spans;
    for (const LastingMemory& memory : memories_) spans.push_back(memory.bytes());
    reconcile_shards(spans, rules_);
    ++generation_;
    start();
  }

  cluster::Claim claim(int worker) {
    cluster::Claim claim;
    EXPECT_EQ(board_->claim(worker, claim), cluster::WorkBoard::Answer::claimed);
    shard(0).note_work(generation_, {claim.step, claim.part, worker});
    return claim;
  }

  RequestHeader push(int worker, std::uint64_t sequence, std::uint64_t version = 0) const {
    RequestHeader header = push_and_pull(worker, sequence, version);
    header.generation = generation_;
    return header;
  }

  /// The push of a worker of the group before, by one of this group.
  RequestHeader again(int worker, RequestHeader header) const {
    header.again_generation = header.generation;
    header.again_worker = header.worker;
    header.generation = generation_;
    header.worker = worker;
    return header;
  }

  Shard& shard(int server) { return *shards_[static_cast<std::size_t>(server)]; }
  const cluster::PushCounts& counts(int server) { return shard(server).counts(); }
  cluster::WorkLeft left() const { return board_->left(); }

 private:
  void start() {
    for (int server = 0; server < kServers; ++server) {
      auto memory = ShardMemory::find(memories_[static_cast<std::size_t>(server)].bytes());
      if (server == 0) {
        board_.emplace(
            cluster::WorkBoard::Options{.workers = kWorkers,
                                        .left = memory ? memory->work() : cluster::WorkLeft(),
                                        .end_step = kSteps});
      }
      if (!memory) {
        memory.emplace(ShardShape{.dense = 2}, 0,
                       memories_[static_cast<std::size_t>(server)].bytes());
      }
      shards_.push_back(
          std::make_unique<Shard>(rules_, std::move(*memory), server == 0 ? &*board_ : nullptr));
    }
  }

  ShardRules rules_;
  std::vector<LastingMemory> memories_;
  std::optional<cluster::WorkBoard> board_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::int64_t generation_ = 1;
};

void submit(TwoServers& servers, int server, const RequestHeader& header, float value,
            std::vector<cluster::Claim> pieces = {}) {
  Request request;
  const std::vector<float> dense = {value, 0};
  std::vector<float> pulled(2);
  bool answered = false;
  request.header = header;
  request.dense = dense;
  request.pieces = std::move(pieces);
  request.pull_into = pulled;
  request.answer = [&](const ReplyHeader&) { answered = true; };
  request.refuse = [](const Error& error) { ADD_FAILURE() << error.what(); };
  servers.shard(server).submit(std::move(request));
  EXPECT_TRUE(answered);
}

TEST(PushAgain, IsAppliedWhereItWasNotAndOnlyThere) {
  for (const int has_it : {0, 1}) {
    TwoServers servers(Consistency::async);
    const cluster::Claim piece = servers.claim(1);
    const RequestHeader push = servers.push(1, 1);
    submit(servers, has_it, push, 1);
    servers.die();
    EXPECT_EQ(servers.counts(1 - has_it).missing, 1U) << "nobody else would tell of it";
    for (int times = 0; times < 2; ++times) {
      for (const int server : {0, 1}) {
        submit(servers, server, servers.again(0, push), 1, {piece});
        EXPECT_THAT(servers.shard(server).dense(), ElementsAre(-1, 10));
        EXPECT_EQ(servers.counts(server).applied, 1U);
        EXPECT_EQ(servers.counts(server).missing, 0U);
      }
      EXPECT_THAT(servers.left().again, IsEmpty());
      EXPECT_EQ(servers.counts(0).fingerprint, servers.counts(1).fingerprint);
      if (times == 0) servers.die();  // And the group that made it again breaks too.
    }
    EXPECT_EQ(servers.claim(0), (cluster::Claim{.step = 1, .part = 0}));
  }
}

TEST(PushAgain, ThatNobodyHasIsAppliedAndItsWorkNotHandedOut) {
  TwoServers servers(Consistency::async);
  const std::vector<cluster::Claim> pieces = {servers.claim(0), servers.claim(0)};
  const cluster::Claim of_another = servers.claim(1);
  const RequestHeader push = servers.push(0, 1);
  servers.die();
  for (const int server : {0, 1}) submit(servers, server, servers.again(1, push), 1, pieces);
  EXPECT_THAT(servers.left().again, ElementsAre(of_another));
  EXPECT_EQ(servers.claim(0), of_another);
}

TEST(PushAgain, DoesNotWaitForAQuorumAndIsInTheNextUpdate) {
  TwoServers servers(Consistency::quorum, 2);
  const RequestHeader push = servers.push(0, 1);
  Call waiting(push, {1, 0});
  servers.claim(0);
  waiting.submit(servers.shard(0));
  EXPECT_TRUE(waiting.waits());
  servers.die();
  EXPECT_EQ(servers.counts(0).missing + servers.counts(1).missing, 0U) << "no server has it";
  for (const int server : {0, 1}) {
    submit(servers, server, servers.again(0, push), 1, {{.step = 0, .part = 0}});
    EXPECT_EQ(servers.shard(server).version(), 0U);
  }
  servers.die();  // What is kept counts also after that.
  for (const int server : {0, 1}) {
    submit(servers, server, servers.again(0, push), 1);
    submit(servers, server, servers.push(1, 1), 3);
    EXPECT_THAT(servers.shard(server).dense(), ElementsAre(-4, 10));
    EXPECT_EQ(servers.counts(server).applied, 2U);
  }
  EXPECT_EQ(servers.counts(0).fingerprint, servers.counts(1).fingerprint);
}

// A worker that dies between two servers: what one has applied stays, and is told of.
TEST(PushAgain, OfTheDeadIsMissingAndItsWorkNotDoneTwice) {
  for (const int has_it : {0, 1}) {
    TwoServers servers(Consistency::async);
    servers.claim(1);
    const cluster::Claim of_another = servers.claim(0);
    submit(servers, has_it, servers.push(1, 1), 1);
    servers.die();
    EXPECT_THAT(servers.left().again, ElementsAre(of_another));
    servers.die();
    EXPECT_EQ(servers.counts(has_it).missing, 0U);
    EXPECT_EQ(servers.counts(1 - has_it).missing, 1U);
    EXPECT_EQ(servers.claim(0), of_another);
    for (const int server : {0, 1}) submit(servers, server, servers.push(0, 1), 1);
    servers.die();
    EXPECT_EQ(servers.counts(1 - has_it).missing, 1U);
    EXPECT_EQ(servers.counts(has_it).applied, 2U);
    EXPECT_EQ(servers.counts(1 - has_it).applied, 1U);
  }
}

// Who was lost between making it again and its first piece of work does not know that all have.
TEST(PushAgain, IsDoneOnceTheNextGroupHasBegun) {
  TwoServers servers(Consistency::async);
  const RequestHeader push = servers.push(0, 1);
  for (const int server : {0, 1}) submit(servers, server, push, 1);
  servers.die();
  servers.claim(1);
  servers.die();
  submit(servers, 0, servers.again(0, push), 1);
  EXPECT_THAT(servers.shard(0).dense(), ElementsAre(-1, 10));
  EXPECT_EQ(servers.counts(0).duplicates, 1U);
  RequestHeader strange = servers.again(0, push);
  strange.again_worker = -1;
  Call other(strange, {1, 0});
  other.submit(servers.shard(0));
  ASSERT_TRUE(other.error);
  EXPECT_THAT(other.error->what(), HasSubstr("worker -1"));
}

// Its memory was lost, and the copy that took its place is of an earlier group.
TEST(PushAgain, OfAGroupThatTheServerHasSeenNothingOfIsNew) {
  TwoServers servers(Consistency::async);
  for (const int server : {0, 1}) submit(servers, server, servers.push(0, 4), 1);
  servers.die();
  const RequestHeader push = servers.push(1, 1);
  servers.die();
  for (int times = 0; times < 2; ++times) {
    submit(servers, 0, servers.again(0, push), 1, {{.step = 2, .part = 0}});
    EXPECT_THAT(servers.shard(0).dense(), ElementsAre(-2, 10));
  }
  EXPECT_THAT(servers.left().again,
              ElementsAre(cluster::Claim{.step = 0}, cluster::Claim{.step = 1}));
}

TEST(PushCounts, OutliveTheServer) {
  TwoServers servers(Consistency::async);
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    for (const int server : {0, 1}) submit(servers, server, servers.push(0, sequence), 1);
  }
  servers.die();
  for (const int server : {0, 1}) submit(servers, server, servers.push(1, 1, 2), 1);
  for (const int server : {0, 1}) {
    EXPECT_EQ(servers.counts(server).applied, 4U);
    EXPECT_THAT(servers.counts(server).histogram(),
                ElementsAre(testing::Pair(0, 1), testing::Pair(1, 2), testing::Pair(2, 1)));
    EXPECT_EQ(servers.counts(server).staleness_max, 2U);
  }
}

}  // namespace
}  // namespace cohort::server
