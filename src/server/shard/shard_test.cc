// What a shard does with the requests of a few workers, one rule at a time, on two floats whose
// values can be worked out by hand: when an update is made, of what, and who waits; and what it
// refuses without harm to the others.

#include "server/shard/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/deadline.h"
#include "server/shard/shard_test_support.h"

namespace cohort::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Consistency = ShardRules::Consistency;

TEST(ShardRules, WeighsByStaleness) {
  ShardRules rules;
  EXPECT_EQ(rules.weight_of(7), 1);
  rules.weight = ShardRules::Weight::inverse;
  EXPECT_EQ(rules.weight_of(0), 1);
  EXPECT_EQ(rules.weight_of(1), 1);
  EXPECT_EQ(rules.weight_of(4), 0.25);
  rules.weight = ShardRules::Weight::power;
  rules.weight_power = 0.5;
  EXPECT_EQ(rules.weight_of(0), 1);
  EXPECT_DOUBLE_EQ(rules.weight_of(3), 0.5);
}

TEST(Shard, RefusesRulesAndShapesThatCannotWork) {
  EXPECT_THROW(Shard(rules_of(Consistency::sync, 0), ShardShape()), Error);
  ShardRules quorum = rules_of(Consistency::quorum, 2);
  quorum.quorum = 0;
  EXPECT_THROW(Shard(quorum, ShardShape()), Error);
  ShardShape shape;
  shape.tables = {{.first_row = 3, .end_row = 2, .width = 1}};
  EXPECT_THROW(Shard(rules_of(Consistency::sync, 1), shape), Error);
}

TEST(Shard, WaitsForTheFirstModel) {
  Shard shard(rules_of(Consistency::async, 2), {.dense = 2});
  Call early(pull_by(1));
  Call of_the_gone(pull_by(0));
  early.submit(shard);
  of_the_gone.submit(shard);
  EXPECT_TRUE(early.waits());
  shard.leave(0);
  ASSERT_TRUE(of_the_gone.error);
  EXPECT_EQ(of_the_gone.error->code(), ErrorCode::peer_lost);
  EXPECT_THROW(initialise(shard, std::vector<float>{1}, {}), Error);
  EXPECT_THROW(initialise(shard, std::vector<float>{1, 2}, {{1}}), Error);
  initialise(shard, std::vector<float>{1, 2}, {});
  ASSERT_TRUE(early.reply);
  EXPECT_THAT(early.pulled, ElementsAre(1, 2));
  EXPECT_THROW(initialise(shard, std::vector<float>{1, 2}, {}), Error);
}

TEST(Shard, SyncAppliesTheSumWhenAllHaveCome) {
  TwoFloats server(rules_of(Consistency::sync, 2));
  RequestHeader header = push_and_pull(1, 1);
  header.loss = 0.25;
  header.stop = true;
  header.want_norm = true;
  Call second(header, {1, 2});
  second.submit(server.shard);
  EXPECT_TRUE(second.waits());

  Call look(pull_by(0));
  look.submit(server.shard);
  EXPECT_THAT(look.pulled, ElementsAre(0, 10));
  EXPECT_FALSE(look.reply->stop) << "the step of the one who stops is not made yet";

  header = push_and_pull(0, 1);
  header.loss = 0.5;
  Call first(header, {2, 2});
  first.submit(server.shard);
  for (const Call* call : {&first, &second}) {
    ASSERT_TRUE(call->reply);
    EXPECT_THAT(call->pulled, ElementsAre(-3, 6));
    EXPECT_TRUE(call->reply->applied);
    EXPECT_TRUE(call->reply->stop);
    EXPECT_EQ(call->reply->version, 1u);
    EXPECT_EQ(call->reply->loss, 0.75);
    EXPECT_EQ(call->reply->square_sum, 9 + 16);
    EXPECT_EQ(call->reply->diverged_rank, -1);
  }
  EXPECT_EQ(server.shard.version(), 1u);
  EXPECT_EQ(server.shard.counts().applied, 2u);
  EXPECT_THAT(server.shard.counts().histogram(), ElementsAre(Pair(0, 2)));
}

TEST(Shard, TellsHowLongARequestWaitedForOthers) {
  TwoFloats server(rules_of(Consistency::sync, 2));
  Call first(push_and_pull(0, 1), {0, 0});
  Call last(push_and_pull(1, 1), {0, 0});
  first.submit(server.shard);
  const auto submitted = Clock::now();
  while (Clock::now() == submitted) {
  }
  last.submit(server.shard);
  EXPECT_GT(first.reply->waited_seconds, 0);
  EXPECT_EQ(last.reply->waited_seconds, 0);
}

TEST(Shard, SyncAppliesNothingWhenALossIsNotFinite) {
  TwoFloats server(rules_of(Consistency::sync, 3));
  std::vector<std::unique_ptr<Call>> calls;
  for (int worker = 2; worker >= 0; --worker) {
    RequestHeader header = push_and_pull(worker, 1);
    if (worker > 0) header.loss = std::numeric_limits<double>::quiet_NaN();
    calls.push_back(std::make_unique<Call>(header, std::vector<float>{1, 1}));
    calls.back()->submit(server.shard);
  }
  for (const auto& call : calls) {
    ASSERT_TRUE(call->reply);
    EXPECT_EQ(call->reply->diverged_rank, 1);
    EXPECT_FALSE(call->reply->applied);
    EXPECT_THAT(call->pulled, ElementsAre(0, 10));
  }
  EXPECT_EQ(server.shard.version(), 0u);
  EXPECT_EQ(server.shard.counts().applied, 0u);
  EXPECT_EQ(server.shard.counts().dropped, 3u);
}

TEST(Shard, SyncAppliesNothingWhenAPushIsNotFinite) {
  for (const float none :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    TwoFloats server(rules_of(Consistency::sync, 2));
    Call good(push_and_pull(0, 1), {1, 1});
    Call bad(push_and_pull(1, 1), {1, none});
    bad.submit(server.shard);
    good.submit(server.shard);
    for (const Call* call : {&good, &bad}) {
      ASSERT_TRUE(call->reply);
      EXPECT_EQ(call->reply->diverged_rank, 1);
      EXPECT_FALSE(call->reply->applied);
      EXPECT_THAT(call->pulled, ElementsAre(0, 10));
    }
    EXPECT_EQ(server.shard.counts().not_finite, 1u);
    EXPECT_EQ(server.shard.counts().applied, 0u);
  }
}

// Nothing of it comes into the model, of other workers everything does, and its worker goes on.
TEST(Shard, AsyncLeavesOutAPushThatIsNotFinite) {
  TwoFloats server(rules_of(Consistency::async, 2));
  Call bad(push_and_pull(1, 1), {std::numeric_limits<float>::infinity(), 1});
  bad.submit(server.shard);
  ASSERT_TRUE(bad.reply);
  EXPECT_TRUE(bad.reply->dropped);
  EXPECT_FALSE(bad.reply->applied);
  EXPECT_THAT(bad.pulled, ElementsAre(0, 10));
  Call again(push_and_pull(1, 1), {std::numeric_limits<float>::infinity(), 1});
  again.submit(server.shard);
  EXPECT_TRUE(again.reply->duplicate);
  Call good(push_and_pull(0, 1), {1, 1});
  Call next(push_and_pull(1, 2), {2, 2});
  good.submit(server.shard);
  next.submit(server.shard);
  EXPECT_THAT(server.shard.dense(), ElementsAre(-3, 7));
  EXPECT_EQ(server.shard.counts().not_finite, 1u);
  EXPECT_EQ(server.shard.counts().dropped, 1u);
  EXPECT_EQ(server.shard.counts().applied, 2u);
}

// Not even where everybody's push is waited for.
TEST(Shard, AQuorumDoesNotWaitForWhomItHasRefused) {
  ShardRules rules = rules_of(Consistency::quorum, 2);
  rules.quorum = 2;
  TwoFloats server(rules);
  Call good(push_and_pull(0, 1), {2, 2});
  good.submit(server.shard);
  EXPECT_TRUE(good.waits());
  Call bad(push_and_pull(1, 1), {std::numeric_limits<float>::quiet_NaN(), 1});
  bad.submit(server.shard);
  ASSERT_TRUE(bad.reply && good.reply);
  EXPECT_TRUE(bad.reply->dropped);
  EXPECT_TRUE(good.reply->applied);
  EXPECT_TRUE(std::isfinite(server.shard.dense()[0]));
  EXPECT_LT(server.shard.dense()[1], 10);
}

TEST(Shard, AsyncAppliesAtOnceAndWeighsStaleness) {
  ShardRules rules = rules_of(Consistency::async, 2);
  rules.weight = ShardRules::Weight::inverse;
  TwoFloats server(rules);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    Call call(push_and_pull(0, i, i - 1), {1, 0});
    call.submit(server.shard);
    ASSERT_TRUE(call.reply);
    EXPECT_EQ(call.reply->staleness, 0u);
    EXPECT_EQ(call.reply->waited_seconds, 0);
    EXPECT_EQ(call.pulled.front(), -static_cast<float>(i));
  }
  RequestHeader header = push_and_pull(1, 1);
  header.stop = true;
  header.want_norm = true;
  Call stale(header, {8, 0});
  stale.submit(server.shard);
  EXPECT_EQ(stale.reply->staleness, 4u);
  EXPECT_THAT(stale.pulled, ElementsAre(-6, 10));
  EXPECT_EQ(stale.reply->square_sum, 16) << "as if the whole step were like this half";
  EXPECT_THAT(server.shard.counts().histogram(), ElementsAre(Pair(0, 4), Pair(4, 1)));
  Call other(pull_by(0));
  other.submit(server.shard);
  EXPECT_TRUE(other.reply->stop) << "everybody hears that one was asked to stop";
}

TEST(Shard, DeltasAreAddedAsPartsOfAMean) {
  ShardRules rules = rules_of(Consistency::async, 2);
  rules.deltas = true;
  rules.optimizer.lr = 0.5;  // The outer rate; that of the header is the worker's own.
  TwoFloats server(rules);
  Call one(push_and_pull(0, 1), {4, -8});
  one.submit(server.shard);
  EXPECT_THAT(one.pulled, ElementsAre(1, 8));

  rules.consistency = Consistency::sync;
  TwoFloats in_step(rules);
  Call first(push_and_pull(0, 1), {4, -8});
  Call second(push_and_pull(1, 1), {8, 0});
  first.submit(in_step.shard);
  second.submit(in_step.shard);
  EXPECT_THAT(first.pulled, ElementsAre(3, 8));
}

TEST(Shard, ALatePushToTheOnlyServerWaitsForItsUpdate) {
  ShardRules rules = rules_of(Consistency::quorum, 4);
  rules.quorum = 2;
  rules.late_waits = true;
  TwoFloats server(rules);
  Call first(push_and_pull(3, 1), {1, 0});
  Call second(push_and_pull(1, 1), {1, 0});
  Call late(push_and_pull(0, 1), {1, 0});
  for (Call* call : {&first, &second, &late}) call->submit(server.shard);
  EXPECT_TRUE(second.reply);
  EXPECT_TRUE(late.waits());
  Call fresh(push_and_pull(3, 2, 1), {1, 0});
  fresh.submit(server.shard);
  ASSERT_TRUE(late.reply);
  EXPECT_EQ(late.pulled, fresh.pulled);
  EXPECT_EQ(server.shard.version(), 2U);
}

TEST(Shard, QuorumAppliesSomeWithoutTheOthers) {
  ShardRules rules = rules_of(Consistency::quorum, 4);
  rules.quorum = 2;
  rules.weight = ShardRules::Weight::power;
  rules.weight_power = 1;
  TwoFloats server(rules);
  Call first(push_and_pull(3, 1), {1, 0});
  first.submit(server.shard);
  EXPECT_TRUE(first.waits());
  RequestHeader header = push_and_pull(1, 1);
  header.lr = 0.5;  // The push that completes the quorum says the rate.
  Call second(header, {2, 0});
  second.submit(server.shard);
  EXPECT_THAT(first.pulled, ElementsAre(-1.5, 10));
  EXPECT_THAT(second.pulled, ElementsAre(-1.5, 10));

  // A late one is answered at once with what there is; its gradient counts in the next update.
  Call late(push_and_pull(0, 1), {2, 0});
  late.submit(server.shard);
  ASSERT_TRUE(late.reply);
  EXPECT_THAT(late.pulled, ElementsAre(-1.5, 10));
  EXPECT_TRUE(late.reply->applied);
  EXPECT_EQ(late.reply->staleness, 1u);
  EXPECT_EQ(server.shard.counts().applied, 3u);
  late.dense = {99, 99};  // Its memory is the worker's again.
  Call fresh(push_and_pull(3, 2, 1), {1, 0});
  fresh.submit(server.shard);
  EXPECT_THAT(fresh.pulled, ElementsAre(-3.5, 10));  // -1.5 - (2/2 + 1)
  EXPECT_EQ(server.shard.counts().applied, 4u);
  EXPECT_EQ(server.shard.counts().dropped, 0u);
  EXPECT_THAT(server.shard.counts().histogram(), ElementsAre(Pair(0, 3), Pair(1, 1)));
}

TEST(Shard, WhatIsLateIsNotForgottenAtTheEnd) {
  ShardRules rules = rules_of(Consistency::quorum, 3);
  rules.quorum = 2;
  rules.parts = 4;
  TwoFloats server(rules);
  std::vector<std::unique_ptr<Call>> last_pushes;
  for (int worker = 0; worker < 3; ++worker) {
    RequestHeader header = push_and_pull(worker, 1);
    header.finished = true;
    last_pushes.push_back(std::make_unique<Call>(header, std::vector<float>{2, 0}));
    last_pushes.back()->submit(server.shard);
  }
  EXPECT_EQ(server.shard.version(), 2u);
  EXPECT_THAT(server.shard.dense(), ElementsAre(-4 - 2, 10));
}

TEST(Shard, QuorumDoesNotExpectADroppedWorkerTwice) {
  ShardRules rules = rules_of(Consistency::quorum, 3);
  rules.quorum = 2;
  rules.drop_late = true;
  TwoFloats server(rules);
  RequestHeader header = push_and_pull(2, 1);
  header.finished = true;
  Call finishing(header, {1, 0});
  Call first(push_and_pull(1, 1), {1, 0});
  finishing.submit(server.shard);
  first.submit(server.shard);
  Call fresh(push_and_pull(1, 2, 1), {1, 0});
  fresh.submit(server.shard);
  EXPECT_TRUE(fresh.waits());
  // Worker 0 may now wait for a server at which worker 1 was the late one.
  Call late(push_and_pull(0, 1), {1, 0});
  late.submit(server.shard);
  EXPECT_TRUE(late.reply->dropped);
  EXPECT_TRUE(fresh.reply);
}

TEST(Shard, QuorumDropsWhatIsLateWhereItIsToldTo) {
  ShardRules rules = rules_of(Consistency::quorum, 2);
  rules.drop_late = true;
  TwoFloats server(rules);
  Call first(push_and_pull(0, 1), {1, 0});
  first.submit(server.shard);
  EXPECT_THAT(first.pulled, ElementsAre(-1, 10));
  Call late(push_and_pull(1, 1), {1, 0});
  late.submit(server.shard);
  ASSERT_TRUE(late.reply);
  EXPECT_TRUE(late.reply->dropped);
  EXPECT_FALSE(late.reply->applied);
  EXPECT_EQ(late.reply->version, 1u);
  EXPECT_THAT(late.pulled, ElementsAre(-1, 10));
  EXPECT_EQ(server.shard.counts().applied, 1u);
  EXPECT_EQ(server.shard.counts().dropped, 1u);
  EXPECT_THAT(server.shard.counts().histogram(), ElementsAre(Pair(0, 1), Pair(1, 1)));
}

struct BadRequest {
  const char* why;
  Consistency consistency;
  std::function<void(Call&)> spoil;
};

TEST(Shard, RefusesBadRequestsAndGoesOn) {
  const auto sync = Consistency::sync;
  const std::vector<BadRequest> bad = {
      {"worker 2", sync, [](Call& call) { call.header.worker = 2; }},
      {"worker -1", sync, [](Call& call) { call.header.worker = -1; }},
      {"sequence", sync, [](Call& call) { call.header.sequence = 0; }},
      {"pushed 1 floats", sync, [](Call& call) { call.dense.pop_back(); }},
      {"pulls into 3 floats", sync, [](Call& call) { call.pulled.resize(3); }},
      {"version 9", sync, [](Call& call) { call.header.version = 9; }},
      {"does not compress", sync, [](Call& call) { call.encoded.resize(8); }},
      {"scale", sync, [](Call& call) { call.header.scale = std::nan(""); }},
      {"without a push", sync,
       [](Call& call) { call.header.hold = true, call.header.push = false; }},
      {"learning rate of -1", sync, [](Call& call) { call.header.lr = -1; }},
      {"rate of 1000; this job's are 0 to 2", sync, [](Call& call) { call.header.lr = 1000; }},
      {"rate of 1000; this job's are 0 to 2", Consistency::async,
       [](Call& call) { call.header.lr = 1000; }},
      {"rate of 1000", sync,
       [](Call& call) {
         call.header.apply = true, call.header.push = false, call.header.lr = 1000;
       }},
      {"scale of 7", sync,
       [](Call& call) {
         call.header.apply = true, call.header.push = false, call.header.scale = 7;
       }},
      {"scale of -1", sync,
       [](Call& call) {
         call.header.apply = true, call.header.push = false, call.header.scale = -1;
       }},
      {"in one request", sync, [](Call& call) { call.header.apply = true; }},
      {"nothing of it is held", sync,
       [](Call& call) { call.header.apply = true, call.header.push = false; }},
      {"only sync", Consistency::async, [](Call& call) { call.header.hold = true; }},
      {"table 0", sync, [](Call& call) { call.rows = {{.table = 0}}; }},
      {"table 5", sync, [](Call& call) { call.wanted = {{.table = 5}}; }},
  };
  for (const BadRequest& one : bad) {
    SCOPED_TRACE(one.why);
    ShardRules rules = rules_of(one.consistency, 2);
    rules.most_lr = 2;
    TwoFloats server(rules);
    Call call(push_and_pull(0, 1), {1, 0});
    one.spoil(call);
    call.submit(server.shard);
    ASSERT_TRUE(call.error);
    EXPECT_THAT(call.error->what(), HasSubstr(one.why));
    Call good(push_and_pull(0, 1), {1, 0});
    Call other(push_and_pull(1, 1), {1, 0});
    good.submit(server.shard);
    other.submit(server.shard);
    EXPECT_THAT(other.pulled, ElementsAre(-2, 10));
    EXPECT_EQ(server.shard.counts().duplicates, 0u);
  }
}

TEST(Shard, RefusesASecondPushWhileTheFirstWaits) {
  TwoFloats server(rules_of(Consistency::sync, 2));
  Call first(push_and_pull(0, 1), {1, 0});
  Call second(push_and_pull(0, 2), {1, 0});
  first.submit(server.shard);
  second.submit(server.shard);
  EXPECT_THAT(second.error->what(), HasSubstr("still waits"));
  EXPECT_TRUE(first.waits());
  Call finished(finished_by(1));
  finished.submit(server.shard);
  EXPECT_THAT(first.pulled, ElementsAre(-1, 10));
  EXPECT_THROW(server.shard.leave(2), Error);
}

}  // namespace
}  // namespace cohort::server
