#include "chaos/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

/// Reports of rounds that are made up.

namespace cohort::chaos {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

EventResult event(Fault fault, double seconds) {
  EventResult result{.event = {.fault = fault, .role = TaskRole::worker, .point = ""},
                     .round = 1,
                     .strategy = "gossip"};
  result.happened = true;
  result.recovered = seconds >= 0;
  result.recovery_seconds = seconds;
  return result;
}

RoundResult round_of(std::vector<EventResult> events) {
  RoundResult round{
      .plan = {.number = 1, .strategy = {.name = "gossip", .settings = {}}, .events = {}}};
  round.events = std::move(events);
  return round;
}

TEST(Report, MedianAndWorstOfEachKind) {
  const std::vector<RoundResult> rounds = {
      round_of({event(Fault::kill, 1), event(Fault::kill, 4), event(Fault::freeze, 15)}),
      round_of({event(Fault::kill, 2), event(Fault::freeze, -1)})};
  const auto figures = figures_by_fault(rounds);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "freeze, worker");
  EXPECT_EQ(figures[0].events, 2);
  EXPECT_EQ(figures[0].recovered, 1);
  EXPECT_EQ(figures[1].median_seconds, 2);
  EXPECT_EQ(figures[1].worst_seconds, 4);
  EXPECT_EQ(figures_by_strategy(rounds).at(0).events, 5);
}

TEST(Report, SaysThatNothingWasLostOrWhatWas) {
  EXPECT_THAT(report_text({round_of({event(Fault::kill, 1)})}),
              HasSubstr("1 events, 1 recovered, nothing lost\n"));
  RoundResult bad = round_of({event(Fault::kill, -1)});
  bad.violations = {"the run hangs"};
  EXPECT_THAT(report_text({bad}), AllOf(HasSubstr("round 1, gossip: the run hangs\n"),
                                        HasSubstr("1 events, 0 recovered, 1 violation\n"),
                                        Not(HasSubstr("nothing lost"))));
}

TEST(Report, AnEventThatDidNotHappenIsNoEvent) {
  EventResult missed = event(Fault::kill, 1);
  missed.happened = missed.recovered = false;
  EXPECT_THAT(report_text({round_of({missed})}),
              AllOf(HasSubstr("0 events"), HasSubstr("1 planned event did not happen")));
}

TEST(Report, JsonHasSeedCommandAndEveryEvent) {
  ChaosOptions options;
  options.seed = 9;
  const auto json = nlohmann::json::parse(
      report_json(options, "cohort chaos x", {round_of({event(Fault::kill, 1)})}));
  EXPECT_EQ(json["seed"], 9);
  EXPECT_EQ(json["replay"], "cohort chaos x");
  EXPECT_EQ(json["events"]["recovered"], 1);
  EXPECT_EQ(json["rounds"][0]["events"][0]["fault"], "kill");
}

}  // namespace
}  // namespace cohort::chaos
