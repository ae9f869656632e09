// Requests that come twice, late or never: by its number every push is applied once and answered
// as often as it comes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/shard/shard_test_support.h"

namespace cohort::server {
namespace {

using ::testing::ElementsAre;
using Consistency = ShardRules::Consistency;

TEST(ShardSequence, APushIsNotAppliedTwice) {
  TwoFloats server(rules_of(Consistency::async, 1));
  Call first(push_and_pull(0, 1), {1, 0});
  first.submit(server.shard);
  Call again(push_and_pull(0, 1), {1, 0});
  again.submit(server.shard);
  EXPECT_TRUE(again.reply->duplicate);
  EXPECT_FALSE(again.reply->applied);
  EXPECT_EQ(again.reply->version, 1u);
  EXPECT_THAT(again.pulled, ElementsAre(-1, 10));
  EXPECT_EQ(server.shard.counts().applied, 1u);
  EXPECT_EQ(server.shard.counts().duplicates, 1u);
}

TEST(ShardSequence, ARepeatedPushTakesThePlaceOfTheOneThatWaits) {
  TwoFloats server(rules_of(Consistency::sync, 2));
  Call lost(push_and_pull(0, 1), {1, 0});
  Call again(push_and_pull(0, 1), {1, 0});
  Call other(push_and_pull(1, 1), {2, 0});
  lost.submit(server.shard);
  again.submit(server.shard);
  ASSERT_TRUE(lost.error);
  EXPECT_EQ(lost.error->code(), ErrorCode::cancelled);
  EXPECT_TRUE(again.waits());
  other.submit(server.shard);
  EXPECT_TRUE(again.reply->applied);
  EXPECT_THAT(again.pulled, ElementsAre(-3, 10));
  EXPECT_EQ(server.shard.counts().applied, 2u);
  EXPECT_EQ(server.shard.counts().duplicates, 1u);
}

TEST(ShardSequence, ALostAnswerIsGivenAgain) {
  TwoFloats server(rules_of(Consistency::sync, 1));
  RequestHeader header = push_and_pull(0, 1);
  header.loss = 2;
  Call first(header, {1, 0});
  Call again(header, {1, 0});
  first.submit(server.shard);
  again.submit(server.shard);
  EXPECT_EQ(again.reply->loss, 2);
  EXPECT_TRUE(again.reply->duplicate);
}

TEST(ShardSequence, CountsPushesThatNeverCame) {
  TwoFloats server(rules_of(Consistency::async, 2));
  Call first(push_and_pull(0, 3), {1, 0});
  first.submit(server.shard);
  EXPECT_TRUE(first.reply->applied);
  EXPECT_EQ(server.shard.counts().missing, 2u);
  Call next(push_and_pull(0, 4), {1, 0});
  next.submit(server.shard);
  Call other(push_and_pull(1, 1), {1, 0});
  other.submit(server.shard);
  EXPECT_EQ(server.shard.counts().missing, 2u);
}

TEST(ShardSequence, AnAnsweredWorkerMaySubmitFromWithinItsAnswer) {
  TwoFloats server(rules_of(Consistency::async, 1));
  Call second(push_and_pull(0, 2), {1, 0});
  const std::vector<float> gradient = {1, 0};
  Request first;
  first.header = push_and_pull(0, 1);
  first.header.pull = false;
  first.dense = gradient;
  first.answer = [&](const ReplyHeader&) { second.submit(server.shard); };
  server.shard.submit(std::move(first));
  ASSERT_TRUE(second.reply);
  EXPECT_THAT(second.pulled, ElementsAre(-2, 10));
}

}  // namespace
}  // namespace cohort::server
