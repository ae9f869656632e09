// What a job's words become on servers: consistency, parts, quorum, update rules and where momentum
// is applied.

#include "strategy/servers/server_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategy/compressed_gradients.h"

namespace cohort::strategy {
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
  const ServerRule rule = server_rule(server("sync"), sgd(0.9));
  EXPECT_EQ(rule.optimizer.momentum, 0.9);
  EXPECT_EQ(rule.slots(), 1U);
}

TEST(ServerRule, MomentumOfPushesAppliedAtOnceIsKeptByTheWorkers) {
  const ServerRule rule = server_rule(server("async"), sgd(0.9));
  EXPECT_EQ(rule.worker_momentum.factor, 0.9);
  EXPECT_EQ(rule.optimizer.momentum, 0);
  EXPECT_EQ(rule.slots(), 0U);
}

TEST(ServerRule, MomentumComesBeforeALossyCodecWhereItWouldComeAfterIt) {
  OptimizerOptions nesterov = sgd(0.9);
  nesterov.nesterov = true;
  StrategyOptions allreduce;
  StrategyOptions gossip;
  gossip.kind = "gossip";
  gossip.send = "gradients";
  const auto corrects = [&](StrategyOptions strategy, const std::string& codec) {
    strategy.compression.kind = codec;
    EXPECT_EQ(corrects_momentum(strategy, sgd(0.9)), corrects_momentum(strategy, nesterov));
    EXPECT_FALSE(corrects_momentum(strategy, sgd(0)));
    return corrects_momentum(strategy, nesterov);
  };
  for (const StrategyOptions& in_step : {allreduce, server("sync")}) {
    EXPECT_TRUE(corrects(in_step, "topk"));
    EXPECT_TRUE(corrects(in_step, "sign"));
    EXPECT_FALSE(corrects(in_step, "int8"));
  }
  EXPECT_TRUE(corrects(server("async"), "topk"));
  EXPECT_FALSE(corrects(server("async"), "sign")) << "it comes before the codec in any case";
  EXPECT_TRUE(corrects(gossip, "topk"));
  EXPECT_FALSE(corrects(gossip, "sign"));
  gossip.send = "parameters";
  EXPECT_FALSE(corrects(gossip, "topk"));
}

TEST(ServerRule, PlainSgdStaysAsItIs) {
  const ServerRule rule = server_rule(server("bounded"), sgd(0));
  EXPECT_EQ(rule.worker_momentum.factor, 0);
  EXPECT_EQ(rule.optimizer.momentum, 0);
}

TEST(ServerRule, OfDeltasIsTheOuterOne) {
  StrategyOptions averaging;
  averaging.kind = "averaging";
  averaging.outer = {.kind = "nesterov", .lr = 0.7, .momentum = 0.8};
  const ServerRule rule = server_rule(averaging, sgd(0.9));
  EXPECT_EQ(rule.optimizer.lr, 0.7);
  EXPECT_EQ(rule.optimizer.momentum, 0.8);
  EXPECT_TRUE(rule.optimizer.nesterov);
}

TEST(ServedGroup, MayBeSmallerThanTheFirst) {
  Job job;
  job.strategy = server("k-of-n");
  job.strategy.quorum = 3;
  job.cluster.workers = 4;
  job.cluster.servers = 2;
  const server::ServerOptions options =
      server_options(job, 0, {.workers = 2, .generation = 5, .steps = 10, .cores = 1});
  EXPECT_EQ(options.generation, 5);
  EXPECT_EQ(options.rules.workers, 2);
  EXPECT_EQ(options.rules.quorum, 2);
  EXPECT_EQ(options.rules.parts, 4) << "a piece moves the model as far in any group";
  ASSERT_TRUE(options.board);
  EXPECT_EQ(options.board->left.parts, 4);
  EXPECT_EQ(options.board->end_step, 10);
  EXPECT_FALSE(server_options(job, 1, {.workers = 2}).board) << "the first server hands out work";
}

TEST(ServedGroup, TakesNoRateThatNoStepHas) {
  Job job;
  job.strategy = server("async");
  job.train.optimizer.lr = 0.5;
  job.train.schedule.scale_by_workers = true;
  job.cluster.workers = 4;
  job.cluster.servers = 1;
  const auto most = [&](int workers) {
    return server_options(job, 0, {.workers = workers, .steps = 10}).rules.most_lr;
  };
  EXPECT_NEAR(most(4), 2, 1e-6);
  EXPECT_NEAR(most(2), 2, 1e-6) << "a push of the first group may be made again in this one";
}

TEST(ServerRule, MomentumThatTheCompressorAppliesIsNotAppliedTwice) {
  StrategyOptions topk = server("sync");
  topk.compression.kind = "topk";
  OptimizerOptions decays = sgd(0.9);
  decays.weight_decay = 0.01;
  const ServerRule rule = server_rule(topk, decays);
  EXPECT_EQ(rule.optimizer.momentum, 0);
  EXPECT_DOUBLE_EQ(rule.optimizer.weight_decay, 0.1);
}

}  // namespace
}  // namespace cohort::strategy
