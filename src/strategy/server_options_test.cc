#include "strategy/server_options.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

StrategyOptions server(const std::string& consistency) {
  StrategyOptions options;
  options.kind = "parameter-server";
  options.consistency = consistency;
  return options;
}

OptimizerOptions sgd(double momentum) {
  return {.kind = "sgd", .lr = 0.1, .momentum = momentum};
}

TEST(ServerRule, InStepItIsTheJobsOwn) {
  const ServerRule rule = server_rule(server("sync"), sgd(0.9), 4);
  EXPECT_EQ(rule.optimizer.momentum, 0.9);
  EXPECT_EQ(rule.lr_factor, 1);
}

TEST(ServerRule, MomentumOfPushesAppliedAtOnceIsKeptByTheWorkers) {
  const ServerRule rule = server_rule(server("async"), sgd(0.9), 4);
  EXPECT_EQ(rule.worker_momentum, 0.9);
  EXPECT_EQ(rule.optimizer.momentum, 0);
  EXPECT_EQ(rule.lr_factor, 1);
}

TEST(ServerRule, FourStepsOfTheirOwnSizeMakeOne) {
  const ServerRule rule = server_rule(server("async"), {.kind = "adam", .lr = 0.1}, 4);
  EXPECT_EQ(rule.lr_factor, 0.25);
}

TEST(ServerRule, AnUpdateOfTwoGradientsIsHalfAStepOfFourWorkers) {
  StrategyOptions quorum = server("k-of-n");
  quorum.quorum = 2;
  EXPECT_EQ(server_rule(quorum, sgd(0.9), 4).lr_factor, 0.5);
  EXPECT_EQ(server_rule(quorum, {.kind = "adam", .lr = 0.1}, 4).lr_factor, 0.5);
}

TEST(ServerRule, PlainSgdStaysAsItIs) {
  const ServerRule rule = server_rule(server("bounded"), sgd(0), 4);
  EXPECT_EQ(rule.lr_factor, 1);
  EXPECT_EQ(rule.optimizer.momentum, 0);
}

TEST(ServerRule, OfDeltasIsTheOuterOne) {
  StrategyOptions averaging;
  averaging.kind = "averaging";
  averaging.outer = {.kind = "nesterov", .lr = 0.7, .momentum = 0.8};
  const ServerRule rule = server_rule(averaging, sgd(0.9), 4);
  EXPECT_EQ(rule.optimizer.lr, 0.7);
  EXPECT_EQ(rule.optimizer.momentum, 0.8);
  EXPECT_TRUE(rule.optimizer.nesterov);
}

TEST(ServerRule, MomentumThatTheCompressorAppliesIsNotAppliedTwice) {
  StrategyOptions topk = server("sync");
  topk.compression.kind = "topk";
  EXPECT_EQ(server_rule(topk, sgd(0.9), 2).optimizer.momentum, 0);
}

}  // namespace
}  // namespace cohort
