// What becomes of the others when a worker finishes, leaves or is lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/shard/shard_test_support.h"

namespace cohort::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Consistency = ShardRules::Consistency;

TEST(ShardLeaving, SyncGoesOnWithoutWhoHasFinished) {
  TwoFloats server(rules_of(Consistency::sync, 3));
  RequestHeader last_push = push_and_pull(0, 1);
  last_push.finished = true;
  Call finishing(last_push, {1, 0});
  Call second(push_and_pull(1, 1), {100, 0});
  Call staying(push_and_pull(2, 1), {2, 0});
  for (Call* call : {&finishing, &second, &staying}) call->submit(server.shard);
  EXPECT_THAT(staying.pulled, ElementsAre(-103, 10));

  Call next(push_and_pull(2, 2, 1), {3, 0});
  next.submit(server.shard);
  Call finished(finished_by(1));
  finished.submit(server.shard);
  EXPECT_THAT(next.pulled, ElementsAre(-106, 10));
  server.shard.leave(0);
  server.shard.leave(1);
  Call alone(push_and_pull(2, 3, 2), {4, 0});
  alone.submit(server.shard);
  EXPECT_THAT(alone.pulled, ElementsAre(-110, 10));

  Call afterwards(push_and_pull(0, 2, 2), {1, 0});
  afterwards.submit(server.shard);
  ASSERT_TRUE(afterwards.error);
  EXPECT_THAT(afterwards.error->what(), HasSubstr("finished or left"));
}

TEST(ShardLeaving, SyncMakesNoStepWithoutAWorkerThatIsLost) {
  for (const bool its_push_has_come : {false, true}) {
    TwoFloats server(rules_of(Consistency::sync, 3));
    Call first(push_and_pull(0, 1), {1, 0});
    Call of_the_lost(push_and_pull(1, 1), {100, 0});
    first.submit(server.shard);
    if (its_push_has_come) of_the_lost.submit(server.shard);
    server.shard.leave(1);
    Call later(push_and_pull(2, 1), {2, 0});
    Call pull(pull_by(2));
    later.submit(server.shard);
    pull.submit(server.shard);
    for (const Call* call : {&first, &later, &pull}) {
      ASSERT_TRUE(call->error);
      EXPECT_EQ(call->error->code(), ErrorCode::peer_lost);
      EXPECT_EQ(call->error->rank(), 1);
      EXPECT_THAT(call->error->what(), HasSubstr("worker 1 is gone"));
    }
    EXPECT_EQ(server.shard.version(), 0U);
    EXPECT_THAT(server.shard.dense(), ElementsAre(0, 10));
    EXPECT_EQ(server.shard.counts().dropped, its_push_has_come ? 2U : 1U);
  }
}

TEST(ShardLeaving, AStepIsMadeWhenAllHadPushedBeforeOneWasLost) {
  TwoFloats server(rules_of(Consistency::sync, 2));
  Call lost(push_and_pull(1, 1), {1, 0});
  Call staying(push_and_pull(0, 1), {2, 0});
  lost.submit(server.shard);
  staying.submit(server.shard);
  server.shard.leave(1);
  EXPECT_THAT(staying.pulled, ElementsAre(-3, 10));
  EXPECT_EQ(server.shard.version(), 1U);
}

TEST(ShardLeaving, AQuorumOfMoreThanThereAreIsAllOfThem) {
  ShardRules rules = rules_of(Consistency::quorum, 2);
  rules.quorum = 5;
  TwoFloats server(rules);
  Call first(push_and_pull(0, 1), {1, 0});
  Call second(push_and_pull(1, 1), {1, 0});
  first.submit(server.shard);
  EXPECT_TRUE(first.waits());
  second.submit(server.shard);
  EXPECT_THAT(first.pulled, ElementsAre(-2, 10));
}

TEST(ShardLeaving, WhoFinishesOrLeavesCanCompleteAQuorum) {
  ShardRules rules = rules_of(Consistency::quorum, 4);
  rules.quorum = 3;
  TwoFloats server(rules);
  Call first(push_and_pull(0, 1), {1, 0});
  Call second(push_and_pull(1, 1), {1, 0});
  first.submit(server.shard);
  second.submit(server.shard);
  Call finished(finished_by(2));
  finished.submit(server.shard);
  ASSERT_TRUE(finished.reply);
  EXPECT_TRUE(first.waits());
  server.shard.leave(3);
  EXPECT_THAT(first.pulled, ElementsAre(-2, 10)) << "two pushes, not two for three";
  EXPECT_THAT(second.pulled, ElementsAre(-2, 10));

  RequestHeader last = push_and_pull(0, 2, 1);
  last.finished = true;
  Call third(last, {1, 0});
  third.submit(server.shard);
  EXPECT_TRUE(third.waits()) << "its own push still counts";
  Call fourth(finished_by(1));
  fourth.submit(server.shard);
  EXPECT_THAT(third.pulled, ElementsAre(-3, 10));
}

TEST(ShardLeaving, AsyncGoesOnWithoutWhoIsLost) {
  TwoFloats server(rules_of(Consistency::async, 2));
  server.shard.leave(1);
  Call staying(push_and_pull(0, 1), {1, 0});
  staying.submit(server.shard);
  EXPECT_THAT(staying.pulled, ElementsAre(-1, 10));
  Call of_the_gone(push_and_pull(1, 1), {1, 0});
  of_the_gone.submit(server.shard);
  EXPECT_THAT(of_the_gone.error->what(), HasSubstr("finished or left"));
}

// Another server may have applied it already.
TEST(ShardLeaving, APushOfTheLostThatWaitsGoesIntoTheNextUpdate) {
  ShardRules rules = rules_of(Consistency::quorum, 3);
  rules.quorum = 2;
  rules.parts = 4;
  TwoFloats server(rules);
  Call lost(push_and_pull(2, 1), {100, 0});
  lost.submit(server.shard);
  server.shard.leave(2);
  EXPECT_EQ(lost.error->rank(), 2);
  lost.dense = {99, 99};
  Call first(push_and_pull(0, 1), {1, 0});
  first.submit(server.shard);
  EXPECT_THAT(first.pulled, ElementsAre(-101, 10));
  EXPECT_EQ(server.shard.counts().applied, 2U);
  EXPECT_EQ(server.shard.counts().dropped, 0U);
}

}  // namespace
}  // namespace cohort::server
