#include "job/check_job.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "base/fail.h"

/// A good job is spoiled in one place after the other, and the words of the refusal are looked for.

namespace cohort::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// What check_strategy says of a job of four workers after `spoil`; empty where nothing is wrong.
std::string strategy_objection(const std::function<void(Job&)>& spoil) {
  Job job;
  job.cluster.workers = 4;
  job.strategy.kind = "parameter-server";
  job.cluster.servers = 1;
  spoil(job);
  try {
    check_strategy(job);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
    return error.what();
  }
  return "";
}

TEST(CheckStrategy, AcceptsWhatGoesTogether) {
  EXPECT_EQ(strategy_objection([](Job&) {}), "");
  EXPECT_EQ(strategy_objection([](Job& j) {
              j.strategy.consistency = "k-of-n";
              j.strategy.quorum = 4;
            }),
            "");
}

TEST(CheckStrategy, AQuorumIsAtMostTheWorkers) {
  EXPECT_THAT(strategy_objection([](Job& j) {
                j.strategy.consistency = "k-of-n";
                j.strategy.quorum = 5;
              }),
              AllOf(HasSubstr("quorum is 5"), HasSubstr("1 to 4")));
  EXPECT_THAT(strategy_objection([](Job& j) { j.strategy.consistency = "k-of-n"; }),
              HasSubstr("quorum is 0"));
  EXPECT_THAT(strategy_objection([](Job& j) { j.strategy.quorum = 2; }), HasSubstr("k-of-n"));
}

TEST(CheckStrategy, AKeyThatNobodyReadsIsNamed) {
  EXPECT_THAT(strategy_objection([](Job& j) { j.strategy.topology = "ring"; }),
              AllOf(HasSubstr("strategy.topology"), HasSubstr("gossip")));
  EXPECT_THAT(strategy_objection([](Job& j) { j.strategy.local_steps = 2; }), HasSubstr("delta"));
}

TEST(CheckStrategy, ACodecThatCannotBeUsedIsNamedWithThoseThatCan) {
  const auto gossip_with = [](const std::string& codec) {
    return strategy_objection([&](Job& j) {
      j.strategy.kind = "gossip";
      j.cluster.servers = 0;
      j.strategy.compression.kind = codec;
    });
  };
  EXPECT_EQ(gossip_with("int8"), "");
  EXPECT_THAT(gossip_with("lowrank"), AllOf(HasSubstr("\"lowrank\""), HasSubstr("topk")));
  EXPECT_THAT(strategy_objection([](Job& j) { j.strategy.compression.kind = "auto"; }),
              HasSubstr("cannot use compression \"auto\""));
}

TEST(CheckStrategy, GossipBySignsAndMomentumDoNotGoTogether) {
  const auto gossip_with = [](const std::string& codec, const OptimizerOptions& optimizer) {
    return strategy_objection([&](Job& j) {
      j.strategy.kind = "gossip";
      j.strategy.send = "gradients";
      j.cluster.servers = 0;
      j.strategy.compression.kind = codec;
      j.train.optimizer = optimizer;
    });
  };
  const OptimizerOptions momentum{.kind = "sgd", .momentum = 0.9};
  for (const char* codec : {"sign", "lowrank"}) {
    EXPECT_THAT(gossip_with(codec, momentum),
                AllOf(HasSubstr(codec), HasSubstr("train.optimizer.momentum is 0.9")));
    EXPECT_EQ(gossip_with(codec, {.kind = "sgd"}), "");
    EXPECT_EQ(gossip_with(codec, {.kind = "adam"}), "");
  }
  EXPECT_EQ(gossip_with("topk", momentum), "");
}

TEST(CheckStrategy, ServersNeedAStrategyThatUsesThem) {
  EXPECT_THAT(strategy_objection([](Job& j) { j.strategy.kind = "allreduce"; }),
              AllOf(HasSubstr("cluster.servers is 1"), HasSubstr("parameter-server")));
}

TEST(CheckStrategy, ACopyNeedsAnotherServer) {
  EXPECT_THAT(strategy_objection([](Job& job) { job.strategy.replicas = 2; }),
              HasSubstr("cluster.servers is 1"));
  EXPECT_EQ(strategy_objection([](Job& job) {
              job.strategy.replicas = 2;
              job.cluster.servers = 2;
            }),
            "");
}

}  // namespace
}  // namespace cohort::job
