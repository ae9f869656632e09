// A server's lasting memory is mapped by more processes than the server. Numbers that were written
// there by somebody else lead nowhere outside of it.

#include <cohort/error.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "server/memory/lasting_memory.h"
#include "server/memory/shard_memory.h"
#include "server/shard/gradient_sum.h"

namespace cohort::server {
namespace {

/// Two dense floats, and a table whose second half this shard has.
const ShardShape kInjuredShape = {
    .dense = 2, .tables = {{.first_row = 4, .end_row = 8, .width = 1}}, .matrices = {}};

struct Injured {
  Injured() {
    memory.publish({.version = 1}, nullptr, std::vector<LedgerEntry>(1));
    memory.begin_update();
  }

  /// Of the header: what is a model, its slots, bytes of its shape, the current record, the journal.
  std::uint64_t& word(std::size_t index) const {
    return reinterpret_cast<std::uint64_t*>(lasting.bytes().data())[index];
  }

  LastingMemory lasting{ShardMemory::bytes_needed(kInjuredShape, 0)};
  ShardMemory memory{kInjuredShape, 0, lasting.bytes()};
};

constexpr std::uint64_t kFarAway = std::uint64_t{1} << 40;

TEST(InjuredMemory, HasOneOfTwoRecords) {
  const Injured one;
  const std::uint64_t version = one.memory.record().version;
  one.word(3) = one.word(3) == 0 ? 0 : kFarAway;
  EXPECT_EQ(one.memory.record().version, version);
  EXPECT_EQ(one.memory.ledger().size(), 1U);
}

TEST(InjuredMemory, OfSoManySlotsIsRefused) {
  const Injured one;
  one.word(1) = kFarAway;
  EXPECT_THROW(ShardMemory::find(one.lasting.bytes()), Error);
}

TEST(InjuredMemory, IsPutBackNoFurtherThanItsEnd) {
  Injured one;
  one.memory.dense().now.values[1] = 7;
  one.memory.dense().saved->store(kFarAway);
  one.memory.recover();
  EXPECT_EQ(one.memory.dense().now.values[1], 0);
}

TEST(InjuredMemory, PutsBackNoRowsOfOthers) {
  for (const std::uint32_t row : {3U, 8U, ~0U}) {
    Injured one;
    const TableArea& table = one.memory.tables()[0];
    const std::vector<std::uint32_t> rows = {5};
    save_rows(table, rows);
    table.journal.rows[0] = row;
    EXPECT_THROW(one.memory.recover(), Error) << row;
    table.journal.rows[0] = 5;
    table.journal.count->store(kFarAway);
    EXPECT_THROW(one.memory.recover(), Error) << "what follows are rows of zero";
  }
}

// Row 0 is one of this shard: what follows the journal's rows, zeros, would be rows of it, too.
TEST(InjuredMemory, PutsBackNoMoreRowsThanThereAre) {
  const ShardShape shape = {
      .dense = 2, .tables = {{.first_row = 0, .end_row = 4, .width = 1}}, .matrices = {}};
  const LastingMemory lasting(ShardMemory::bytes_needed(shape, 0));
  ShardMemory memory(shape, 0, lasting.bytes());
  memory.publish({.version = 1}, nullptr, std::vector<LedgerEntry>(1));
  memory.begin_update();
  const TableArea& table = memory.tables()[0];
  const std::vector<std::uint32_t> rows = {0, 1, 2, 3};
  table.floats.values[3] = 5;
  save_rows(table, rows);
  table.floats.values[3] = 7;
  table.journal.count->store(kFarAway);
  memory.recover();
  EXPECT_EQ(table.floats.values[3], 5);
}

TEST(InjuredMemory, SumsUpNoRowsOfOthers) {
  for (const std::vector<std::uint32_t>& rows :
       {std::vector<std::uint32_t>{5, 8}, {3, 5}, {5, 5}, {6, 5}}) {
    const Injured one;
    const KeptArea& kept = one.memory.kept(0);
    std::ranges::copy(rows, kept.tables[0].rows.begin());
    GradientSum sum(kInjuredShape, {kept, one.memory.kept(1)});
    *kept.tables[0].count = 2;
    EXPECT_THROW(sum.restore(0, 1), Error);
    *kept.tables[0].count = kFarAway;
    EXPECT_THROW(sum.restore(0, 1), Error);
    EXPECT_THROW(sum.restore(2, 1), Error);
  }
}

}  // namespace
}  // namespace cohort::server
