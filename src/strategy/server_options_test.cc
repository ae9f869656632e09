#include "strategy/server_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort {
namespace {

StrategyOptions server(const std::string& consistency) {
  StrategyOptions options;
  options.kind = "parameter-server";
  options.consistency = consistency;
  return options;
}

constexpr WorkSplit kFour = {.workers = 4, .parts = 4};

OptimizerOptions sgd(double momentum) {
  return {.kind = "sgd", .lr = 0.1, .momentum = momentum};
}

TEST(ServerRule, InStepItIsTheJobsOwn) {
  const ServerRule rule = server_rule(server("sync"), sgd(0.9), kFour);
  EXPECT_EQ(rule.optimizer.momentum, 0.9);
  EXPECT_EQ(rule.lr_factor, 1);
}

TEST(ServerRule, MomentumOfPushesAppliedAtOnceIsKeptByTheWorkers) {
  const ServerRule rule = server_rule(server("async"), sgd(0.9), kFour);
  EXPECT_EQ(rule.worker_momentum, 0.9);
  EXPECT_EQ(rule.optimizer.momentum, 0);
  EXPECT_EQ(rule.lr_factor, 1);
}

TEST(ServerRule, FourStepsOfTheirOwnSizeMakeOne) {
  const ServerRule rule = server_rule(server("async"), {.kind = "adam", .lr = 0.1}, kFour);
  EXPECT_EQ(rule.lr_factor, 0.25);
}

TEST(ServerRule, AnUpdateOfTwoGradientsIsHalfAStepOfFourWorkers) {
  StrategyOptions quorum = server("k-of-n");
  quorum.quorum = 2;
  EXPECT_EQ(server_rule(quorum, sgd(0.9), kFour).lr_factor, 0.5);
  EXPECT_EQ(server_rule(quorum, {.kind = "adam", .lr = 0.1}, kFour).lr_factor, 0.5);
}

TEST(ServerRule, PlainSgdStaysAsItIs) {
  const ServerRule rule = server_rule(server("bounded"), sgd(0), kFour);
  EXPECT_EQ(rule.lr_factor, 1);
  EXPECT_EQ(rule.optimizer.momentum, 0);
}

TEST(ServerRule, OfDeltasIsTheOuterOne) {
  StrategyOptions averaging;
  averaging.kind = "averaging";
  averaging.outer = {.kind = "nesterov", .lr = 0.7, .momentum = 0.8};
  const ServerRule rule = server_rule(averaging, sgd(0.9), kFour);
  EXPECT_EQ(rule.optimizer.lr, 0.7);
  EXPECT_EQ(rule.optimizer.momentum, 0.8);
  EXPECT_TRUE(rule.optimizer.nesterov);
}

TEST(ServerRule, APieceMovesTheModelAsFarInAnyGroup) {
  const WorkSplit fewer{.workers = 2, .parts = 4};
  StrategyOptions quorum = server("k-of-n");
  quorum.quorum = 3;
  // Two gradients (there are no three) times workers/2.
  EXPECT_EQ(server_rule(quorum, sgd(0), fewer).lr_factor, 1);
  EXPECT_EQ(server_rule(server("async"), {.kind = "adam", .lr = 0.1}, fewer).lr_factor, 0.25);
  StrategyOptions deltas = server("async");
  deltas.push = "delta";
  EXPECT_EQ(server_rule(deltas, sgd(0), fewer).optimizer.lr, 0.5);
  EXPECT_EQ(server_rule(deltas, sgd(0), kFour).optimizer.lr, 1);
}

TEST(SlotFactors, BringSlotsToTheSizeOfAWholeStep) {
  using ::testing::ElementsAre;
  const OptimizerOptions adam{.kind = "adam", .lr = 0.1};
  const OptimizerOptions adagrad{.kind = "adagrad", .lr = 0.1};
  EXPECT_THAT(slot_factors(server_rule(server("sync"), sgd(0.9), kFour)), ElementsAre(1));
  EXPECT_THAT(slot_factors(server_rule(server("async"), sgd(0.9), kFour)), ElementsAre());
  EXPECT_THAT(slot_factors(server_rule(server("async"), adam, kFour)), ElementsAre(4, 16));
  EXPECT_THAT(slot_factors(server_rule(server("async"), adagrad, kFour)), ElementsAre(4));
  StrategyOptions quorum = server("k-of-n");
  quorum.quorum = 2;
  EXPECT_THAT(slot_factors(server_rule(quorum, adam, kFour)), ElementsAre(1, 1));
  EXPECT_THAT(slot_factors(server_rule(quorum, adagrad, kFour)), ElementsAre(0.5));
}

TEST(ServedGroup, MayBeSmallerThanTheFirst) {
  Job job;
  job.strategy = server("k-of-n");
  job.strategy.quorum = 3;
  job.cluster.workers = 4;
  job.cluster.servers = 2;
  const ServerOptions options =
      server_options(job, 0, {.workers = 2, .epoch = 5, .steps = 10, .cores = 1});
  EXPECT_EQ(options.epoch, 5);
  EXPECT_EQ(options.rules.workers, 2);
  EXPECT_EQ(options.rules.quorum, 2);
  ASSERT_TRUE(options.board);
  EXPECT_EQ(options.board->left.parts, 4);
  EXPECT_EQ(options.board->end_step, 10);
  EXPECT_FALSE(server_options(job, 1, {.workers = 2}).board) << "the first server hands out work";
}

TEST(ServerRule, MomentumThatTheCompressorAppliesIsNotAppliedTwice) {
  StrategyOptions topk = server("sync");
  topk.compression.kind = "topk";
  EXPECT_EQ(server_rule(topk, sgd(0.9), kFour).optimizer.momentum, 0);
}

}  // namespace
}  // namespace cohort
