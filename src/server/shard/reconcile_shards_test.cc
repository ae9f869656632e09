// What the launcher makes of memories that servers have left in different states, which are filled
// by hand here.

#include "server/shard/reconcile_shards.h"

#include <gmock/gmock.h>

#include <vector>

#include "server/memory/lasting_memory.h"

namespace cohort::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kShards = 2;

/// What a server had when it ended.
struct Left {
  std::int64_t group = 1;                      ///< That its ledger is of.
  std::vector<LedgerEntry> ledger;             ///< By worker of that group.
  std::vector<cluster::Claim> under_way = {};  ///< Pieces, and who had them.
};

/// The memories of two servers and of the copies they keep of each other, filled by hand.
class Memories {
 public:
  Memories() {
    for (int i = 0; i < kShards; ++i) {
      memories_.emplace_back(ShardMemory::bytes_needed(kShape, 0));
      replicas_.emplace_back(ShardMemory::bytes_needed(kShape, 0));
    }
  }

  void fill(int server, const Left& left) { fill(memories_[at(server)], left); }
  /// Server 1 keeps the copy of server 0, and the other way round.
  void fill_copy_of(int server, const Left& left) { fill(replicas_[at(1 - server)], left); }

  ReconciledShards reconcile() {
    ShardRules rules;
    rules.consistency = ShardRules::Consistency::async;
    return reconcile_shards(spans_of(memories_), rules, spans_of(replicas_));
  }

  ShardMemory shard(int server) const { return *ShardMemory::find(memories_[at(server)].bytes()); }

 private:
  static inline const ShardShape kShape{.dense = 2};

  static std::size_t at(int server) { return static_cast<std::size_t>(server); }

  static void fill(const LastingMemory& memory, const Left& left) {
    const cluster::WorkLeft work{.next = 10, .parts = 1, .again = left.under_way};
    ShardMemory(kShape, 0, memory.bytes())
        .publish({.ledger_generation = left.group}, &work, left.ledger);
  }

  static std::vector<std::span<std::byte>> spans_of(const std::vector<LastingMemory>& memories) {
    std::vector<std::span<std::byte>> spans;
    for (const LastingMemory& memory : memories) spans.push_back(memory.bytes());
    return spans;
  }

  std::vector<LastingMemory> memories_;
  std::vector<LastingMemory> replicas_;
};

TEST(ReconcileShards, DoesNotHandOutAgainWhatAnotherServerHas) {
  Memories memories;
  memories.fill(0, {.ledger = {{}, {}},
                    .under_way = {{.step = 3, .taken_by = 0}, {.step = 4, .taken_by = 1}}});
  memories.fill(1, {.ledger = {{}, {.settled = 1, .known = 1}}});
  EXPECT_THAT(memories.reconcile().from_copies, IsEmpty());
  EXPECT_THAT(memories.shard(0).work().again, ElementsAre(cluster::Claim{.step = 3}));
  EXPECT_EQ(memories.shard(0).record().counts.missing, 1U);
  EXPECT_EQ(memories.shard(1).record().counts.missing, 0U);
}

// The copy that takes the place of a lost memory may be of the group before: worker 1, which had
// piece 4 there, is another one than worker 1 of the newest ledger. Nobody has pushed piece 4.
TEST(ReconcileShards, HandsOutAgainWhatWorkersOfAnOlderGroupHad) {
  Memories memories;
  memories.fill_copy_of(
      0, {.group = 1, .ledger = {{}, {}}, .under_way = {{.step = 4, .taken_by = 1}}});
  memories.fill(1, {.group = 2, .ledger = {{}, {.settled = 5, .known = 5}}});
  EXPECT_THAT(memories.reconcile().from_copies, ElementsAre(0));
  EXPECT_THAT(memories.shard(0).work().again, ElementsAre(cluster::Claim{.step = 4}));
  EXPECT_EQ(memories.shard(0).record().counts.missing, 5U);
  EXPECT_EQ(memories.shard(0).record().ledger_generation, 2);
}

}  // namespace
}  // namespace cohort::server
