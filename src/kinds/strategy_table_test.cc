// Proves that the rows are complete and consistent, and that a job and its row find each other.

#include "kinds/strategy_table.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/fail.h"

namespace cohort::kinds {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(StrategyTable, EveryRowIsFoundByItsOwnOptions) {
  std::set<std::string> names, titles;
  for (const StrategyWay& way : strategy_ways()) {
    EXPECT_EQ(way_of(options_of(way)).name, way.name);
    EXPECT_TRUE(names.insert(way.name).second) << way.name;
    EXPECT_TRUE(titles.insert(way.title).second) << way.title;
    EXPECT_FALSE(way.words.empty()) << way.name;
  }
  EXPECT_EQ(way_of({}).name, "allreduce");
}

TEST(StrategyTable, TraitsDoNotContradictEachOther) {
  for (const StrategyWay& way : strategy_ways()) {
    SCOPED_TRACE(way.name);
    const StrategyTraits& traits = way.traits;
    EXPECT_TRUE(!traits.lockstep || traits.loss_stops_all) << "a step needs all";
    EXPECT_NE(traits.hands_out_work, traits.loss_stops_all) << "whoever is free does it";
    EXPECT_TRUE(!traits.resumes_to_the_byte || traits.moves_exactly);
    EXPECT_TRUE(!traits.loss_changes_nothing || traits.resumes_to_the_byte);
    EXPECT_TRUE(!traits.takes_quorum || traits.hands_out_work);
  }
}

TEST(StrategyTable, KindsOfOneNameStandTogether) {
  EXPECT_THAT(strategy_kinds(),
              ElementsAre("allreduce", "parameter-server", "averaging", "gossip"));
  EXPECT_THAT(ways_by("consistency"), ElementsAre("sync", "async", "bounded", "k-of-n"));
  EXPECT_THAT(ways_by("colour"), IsEmpty());
  EXPECT_THAT(kinds_that_read("quorum"), ElementsAre("parameter-server", "averaging"));
  EXPECT_THAT(kinds_that_read("mode"), ElementsAre("averaging"));
  EXPECT_THAT(kinds_that_read("colour"), IsEmpty());
}

TEST(StrategyTable, DeltasAreMadeAloneBetweenTwoPushes) {
  StrategyOptions options;
  options.kind = "parameter-server";
  EXPECT_TRUE(way_of(options).traits.lockstep);
  options.push = "delta";
  EXPECT_FALSE(way_of(options).traits.lockstep);
  EXPECT_FALSE(way_of(options).traits.loss_changes_nothing);
  EXPECT_TRUE(way_of(options).traits.resumes_to_the_byte);
  EXPECT_TRUE(way_of(options).traits.loss_stops_all);
}

TEST(StrategyTable, ServersAreAQuestionOfTheKindAlone) {
  EXPECT_TRUE(uses_servers("averaging"));
  EXPECT_FALSE(uses_servers("gossip"));
  EXPECT_FALSE(uses_servers("no kind"));
}

std::string objection(const StrategyOptions& options) {
  try {
    way_of(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "";
}

TEST(StrategyTable, WhatIsInNoRowIsNamedWithTheNearest) {
  StrategyOptions options;
  options.kind = "alreduce";
  EXPECT_THAT(objection(options), HasSubstr("allreduce"));
  options.kind = "parameter-server";
  options.consistency = "asink";
  EXPECT_THAT(objection(options), AllOf(HasSubstr("strategy.consistency"), HasSubstr("async")));
}

TEST(StrategyTable, SettingsNameKindAndWay) {
  EXPECT_THAT(settings_of(strategy_ways().front()), ElementsAre("strategy.kind=allreduce"));
  EXPECT_THAT(settings_of(strategy_ways().back()),
              ElementsAre("strategy.kind=gossip", "strategy.send=gradients"));
}

}  // namespace
}  // namespace cohort::kinds
