// sync pushes that are held until all workers say `apply`, as clipping by the global norm needs
// it; with repeated requests, losses and workers that finish.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/shard/shard_test_support.h"

namespace cohort::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Consistency = ShardRules::Consistency;

RequestHeader hold_by(int worker, std::uint64_t sequence, std::uint64_t version = 0) {
  RequestHeader header = push_and_pull(worker, sequence, version);
  header.pull = false;
  header.hold = true;
  header.loss = 1;
  return header;
}

RequestHeader apply_by(int worker, std::uint64_t version = 0) {
  RequestHeader header;
  header.worker = worker;
  header.version = version;
  header.apply = true;
  header.pull = true;
  header.scale = 0.5;
  header.lr = 2;
  return header;
}

/// Two workers and two floats, 0 and 10 at first, of which 3 and 4 are held.
class HeldGradients : public ::testing::Test {
 protected:
  void SetUp() override {
    initialise(shard_, std::vector<float>{0, 10}, {});
    first_.submit(shard_);
    second_.submit(shard_);
  }

  Shard shard_{rules_of(Consistency::sync, 2), {.dense = 2}};
  Call first_{hold_by(0, 1), {1, 4}};
  Call second_{hold_by(1, 1), {2, 0}};
};

TEST_F(HeldGradients, WaitUntilAllSayApply) {
  for (const Call* call : {&first_, &second_}) {
    ASSERT_TRUE(call->reply);
    EXPECT_EQ(call->reply->square_sum, 25);
    EXPECT_EQ(call->reply->loss, 2);
    EXPECT_FALSE(call->reply->applied);
    EXPECT_EQ(call->reply->version, 0u);
  }
  first_.dense = {99, 99};  // Its memory is the worker's again.
  Call apply(apply_by(1));
  apply.submit(shard_);
  EXPECT_TRUE(apply.waits());
  Call other(apply_by(0));
  other.submit(shard_);
  for (const Call* call : {&apply, &other}) {
    ASSERT_TRUE(call->reply);
    EXPECT_TRUE(call->reply->applied);
    EXPECT_EQ(call->reply->version, 1u);
    EXPECT_EQ(call->reply->loss, 2);
    EXPECT_THAT(call->pulled, ElementsAre(-3, 6));
  }
  EXPECT_EQ(shard_.counts().applied, 2u);

  Call lost(apply_by(0));
  lost.submit(shard_);
  EXPECT_TRUE(lost.reply->duplicate);
  EXPECT_THAT(lost.pulled, ElementsAre(-3, 6));
  Call unheld(apply_by(0, 1));
  unheld.submit(shard_);
  EXPECT_TRUE(unheld.error);

  Call next(hold_by(0, 2, 1), {1, 0});
  next.submit(shard_);
  EXPECT_TRUE(next.waits());
}

TEST_F(HeldGradients, AnswerARepeatedPushWithTheNorm) {
  Call again(hold_by(0, 1), {1, 4});
  again.submit(shard_);
  ASSERT_TRUE(again.reply);
  EXPECT_TRUE(again.reply->duplicate);
  EXPECT_EQ(again.reply->square_sum, 25);
}

TEST_F(HeldGradients, RefuseTheNextPush) {
  Call early(hold_by(0, 2), {1, 0});
  early.submit(shard_);
  EXPECT_THAT(early.error->what(), HasSubstr("before what is held was applied"));
}

TEST_F(HeldGradients, ARepeatedApplyTakesThePlaceOfTheFirst) {
  Call apply(apply_by(0));
  Call again(apply_by(0));
  apply.submit(shard_);
  again.submit(shard_);
  EXPECT_EQ(apply.error->code(), ErrorCode::cancelled);
  Call other(apply_by(1));
  other.submit(shard_);
  EXPECT_THAT(again.pulled, ElementsAre(-3, 6));
}

TEST_F(HeldGradients, AreDroppedWhenAWorkerIsLost) {
  Call apply(apply_by(0));
  apply.submit(shard_);
  shard_.leave(1);
  ASSERT_TRUE(apply.error);
  EXPECT_EQ(apply.error->rank(), 1);
  EXPECT_THAT(shard_.dense(), ElementsAre(0, 10));
  EXPECT_EQ(shard_.version(), 0u);
  EXPECT_EQ(shard_.counts().dropped, 2u);
}

TEST(ShardHold, AWorkerThatFinishesStillApplies) {
  Shard shard(rules_of(Consistency::sync, 2), {.dense = 1});
  initialise(shard, std::vector<float>{0}, {});
  RequestHeader header = hold_by(0, 1);
  header.finished = true;
  Call first(header, {1});
  Call second(hold_by(1, 1), {1});
  first.submit(shard);
  second.submit(shard);
  Call apply(apply_by(1));
  apply.submit(shard);
  EXPECT_TRUE(apply.waits());
  Call other(apply_by(0));
  other.submit(shard);
  EXPECT_THAT(apply.pulled, ElementsAre(-2));
}

TEST(ShardHold, NobodyHoldsAloneAndNothingThatDiverged) {
  Shard shard(rules_of(Consistency::sync, 2), {.dense = 1});
  initialise(shard, std::vector<float>{0}, {});
  Call plain(push_and_pull(0, 1), {1});
  Call held(hold_by(1, 1), {1});
  plain.submit(shard);
  held.submit(shard);
  EXPECT_THAT(held.error->what(), HasSubstr("all or none"));
  Call same(push_and_pull(1, 1), {1});
  same.submit(shard);
  EXPECT_THAT(same.pulled, ElementsAre(-2));

  RequestHeader header = hold_by(0, 2, 1);
  header.loss = std::numeric_limits<double>::infinity();
  Call diverged(header, {1});
  Call other(hold_by(1, 2, 1), {1});
  diverged.submit(shard);
  other.submit(shard);
  EXPECT_EQ(other.reply->diverged_rank, 0);
  Call apply(apply_by(1, 1));
  apply.submit(shard);
  EXPECT_TRUE(apply.error);
}

}  // namespace
}  // namespace cohort::server
