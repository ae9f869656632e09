// Rows of tables: summed and updated like dense floats, served at once, checked one by one, and
// cut evenly among servers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/shard/shard_test_support.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Consistency = ShardRules::Consistency;

/// No dense floats; rows 10 to 13 of a table two floats wide.
class FourRows {
 public:
  explicit FourRows(const ShardRules& rules)
      : shard_(rules, {.tables = {{.first_row = 10, .end_row = 14, .width = 2}}}) {
    initialise(shard_, {}, {{0, 1, 10, 11, 20, 21, 30, 31}});
  }
  operator Shard&() { return shard_; }

 private:
  Shard shard_;
};

std::vector<float> all_rows(Shard& shard) {
  Call call(pull_by(0));
  call.wanted = {{.table = 0, .rows = {10, 11, 12, 13}, .values = std::vector<float>(8)}};
  call.submit(shard);
  EXPECT_TRUE(call.reply);
  return call.wanted.front().values;
}

TEST(ShardTables, SyncSumsTheRowsOfAllWorkers) {
  FourRows shard(rules_of(Consistency::sync, 3));
  Call first(push_and_pull(0, 1));
  first.header.want_norm = true;
  first.rows = {{.table = 0, .rows = {10, 12}, .values = {1, 1, 2, 2}}};
  Call second(push_and_pull(1, 1));
  second.rows = {{.table = 0, .rows = {12, 13}, .values = {4, 4, 8, 8}}};
  Call none(push_and_pull(2, 1));
  second.submit(shard);
  first.submit(shard);
  EXPECT_THAT(all_rows(shard), ElementsAre(0, 1, 10, 11, 20, 21, 30, 31));
  none.submit(shard);
  EXPECT_EQ(first.reply->square_sum, 2 * (1 + 36 + 64));
  EXPECT_THAT(all_rows(shard), ElementsAre(-1, 0, 10, 11, 14, 15, 22, 23));
}

TEST(ShardTables, AsyncAppliesRowsAtOnceButServesThemAsTheyWere) {
  FourRows shard(rules_of(Consistency::async, 2));
  Call call(push_and_pull(1, 1));
  call.rows = {{.table = 0, .rows = {11, 12, 13}, .values = {1, 1, 2, 2, 3, 3}}};
  call.wanted = {{.table = 0, .rows = {13, 11}, .values = std::vector<float>(4)}};
  call.submit(shard);
  EXPECT_THAT(call.wanted.front().values, ElementsAre(30, 31, 10, 11));
  EXPECT_THAT(all_rows(shard), ElementsAre(0, 1, 9, 10, 18, 19, 27, 28));
}

TEST(ShardTables, ServeRowsWhileAPushWaits) {
  FourRows shard(rules_of(Consistency::sync, 2));
  Call call(push_and_pull(1, 1));
  call.wanted = {{.table = 0, .rows = {13}, .values = std::vector<float>(2)}};
  call.submit(shard);
  EXPECT_TRUE(call.waits());
  EXPECT_THAT(call.wanted.front().values, ElementsAre(30, 31));
}

TEST(ShardTables, LeaveUntouchedRowsAndTheirSlotsAlone) {
  ShardRules rules = rules_of(Consistency::async, 1);
  rules.optimizer = {.momentum = 0.5, .weight_decay = 0};
  FourRows shard(rules);
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    Call call(push_and_pull(0, sequence));
    // Row 10 rests in the second step: its momentum of 1 waits.
    if (sequence != 2) call.rows = {{.table = 0, .rows = {10}, .values = {1, 0}}};
    call.submit(shard);
  }
  EXPECT_THAT(all_rows(shard), ElementsAre(-2.5, 1, 10, 11, 20, 21, 30, 31));
}

TEST(ShardTables, AreHeldLikeDenseGradients) {
  FourRows shard(rules_of(Consistency::sync, 2));
  RequestHeader hold = push_and_pull(0, 1);
  hold.hold = true;
  Call pushed(hold);
  pushed.rows = {{.table = 0, .rows = {12}, .values = {3, 0}}};
  hold.worker = 1;
  Call pushed_too(hold);
  pushed_too.rows = pushed.rows;
  pushed.submit(shard);
  pushed_too.submit(shard);
  EXPECT_EQ(pushed.reply->square_sum, 36);
  EXPECT_THAT(all_rows(shard), ElementsAre(0, 1, 10, 11, 20, 21, 30, 31));
  RequestHeader apply;
  apply.apply = true;
  apply.lr = 1;
  apply.scale = 0.5;
  Call first(apply);
  apply.worker = 1;
  Call second(apply);
  first.submit(shard);
  second.submit(shard);
  EXPECT_TRUE(first.reply && second.reply);
  EXPECT_THAT(all_rows(shard), ElementsAre(0, 1, 10, 11, 17, 21, 30, 31));
}

TEST(ShardTables, LeaveOutRowsThatAreNotFinite) {
  FourRows shard(rules_of(Consistency::async, 2));
  Call call(push_and_pull(1, 1));
  call.rows = {
      {.table = 0, .rows = {11, 13}, .values = {1, 1, 3, std::numeric_limits<float>::infinity()}}};
  call.submit(shard);
  EXPECT_TRUE(call.reply->dropped);
  EXPECT_THAT(all_rows(shard), ElementsAre(0, 1, 10, 11, 20, 21, 30, 31));
}

TEST(ShardTables, RefuseRowsThatAreNotTheirs) {
  struct Bad {
    const char* why;
    OwnRows rows;
  };
  const std::vector<Bad> bad = {
      {"table 1", {.table = 1}},
      {"row 9", {.table = 0, .rows = {9}, .values = {0, 0}}},
      {"row 14", {.table = 0, .rows = {13, 14}, .values = {0, 0, 0, 0}}},
      {"3 floats", {.table = 0, .rows = {10, 11}, .values = {0, 0, 0}}},
  };
  for (const Bad& one : bad) {
    SCOPED_TRACE(one.why);
    FourRows shard(rules_of(Consistency::async, 1));
    Call push(push_and_pull(0, 1));
    push.rows = {one.rows};
    push.submit(shard);
    ASSERT_TRUE(push.error);
    EXPECT_THAT(push.error->what(), HasSubstr(one.why));
    Call want(pull_by(0));
    want.wanted = {one.rows};
    want.submit(shard);
    ASSERT_TRUE(want.error);
    EXPECT_THAT(all_rows(shard), ElementsAre(0, 1, 10, 11, 20, 21, 30, 31));
  }
}

TEST(ShardTables, RefuseRowsThatDoNotAscend) {
  FourRows shard(rules_of(Consistency::async, 1));
  Call unsorted(push_and_pull(0, 1));
  unsorted.rows = {{.table = 0, .rows = {11, 11}, .values = {0, 0, 0, 0}}};
  unsorted.submit(shard);
  EXPECT_EQ(unsorted.error->code(), ErrorCode::corrupt);
  Call twice(push_and_pull(0, 1));
  twice.rows = {{.table = 0}, {.table = 0}};
  twice.submit(shard);
  EXPECT_THAT(twice.error->what(), HasSubstr("twice"));
  Call unpushed(pull_by(0));
  unpushed.rows = {{.table = 0}};
  unpushed.submit(shard);
  EXPECT_THAT(unpushed.error->what(), HasSubstr("without a push"));
}

TEST(ShardParts, CutEverythingOnceAndEvenly) {
  for (const int servers : {1, 2, 3, 7}) {
    for (const std::size_t count : {0u, 5u, 16u, 1000u, 40001u}) {
      std::size_t dense = 0;
      std::size_t rows = 0;
      for (int server = 0; server < servers; ++server) {
        const ShardPart floats = dense_part(count, servers, server);
        EXPECT_EQ(floats.begin, dense);
        EXPECT_LE(floats.end - floats.begin, count / static_cast<std::size_t>(servers) + 16);
        dense = floats.end;
        const ShardPart part = rows_part(count, servers, server);
        EXPECT_EQ(part.begin, rows);
        EXPECT_LE(part.end - part.begin, count / static_cast<std::size_t>(servers) + 1);
        rows = part.end;
      }
      EXPECT_EQ(dense, count);
      EXPECT_EQ(rows, count);
    }
  }
}

}  // namespace
}  // namespace cohort::server
