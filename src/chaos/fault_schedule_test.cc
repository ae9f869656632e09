#include "chaos/fault_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/error.h>

#include <set>

namespace cohort {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ClusterSize kSize{.workers = 3, .servers = 2};

std::vector<RoundPlan> rounds(std::uint64_t seed, int count, const std::string& strategies = "") {
  FaultSchedule schedule(seed, choose_strategies(strategies, kSize));
  std::vector<RoundPlan> all;
  for (int i = 0; i < count; ++i) all.push_back(schedule.next(3));
  return all;
}

TEST(FaultSchedule, FollowsFromTheSeed) {
  const auto once = rounds(7, 40);
  const auto again = rounds(7, 40);
  const auto other = rounds(8, 40);
  int different = 0;
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(once[i].events, again[i].events) << i;
    EXPECT_EQ(once[i].strategy.name, again[i].strategy.name);
    if (once[i].events != other[i].events) ++different;
  }
  EXPECT_GT(different, 30);
}

TEST(FaultSchedule, StrategiesTakeTurns) {
  const auto all = rounds(1, 6, "gossip,server-sync");
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].strategy.name, i % 2 == 0 ? "gossip" : "server-sync");
    EXPECT_EQ(all[i].number, static_cast<int>(i) + 1);
  }
}

TEST(FaultSchedule, EveryFaultReachesEveryRoleThatCanHaveIt) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    // A round has one planted fault, of which there are 14 pairs with servers.
    std::map<std::string, std::set<std::pair<Fault, TaskRole>>> seen;
    for (const RoundPlan& plan : rounds(seed, 10 * 14)) {
      for (const FaultEvent& event : plan.events)
        seen[plan.strategy.name].insert({event.fault, event.role});
    }
    EXPECT_EQ(seen.size(), 10u);
    for (const auto& [name, pairs] : seen) {
      const bool servers = choose_strategies(name, kSize).front().has_servers;
      EXPECT_EQ(pairs.size(), servers ? 23u : 17u) << name << ", seed " << seed;
    }
  }
}

TEST(FaultSchedule, AHundredEventsReachAllPairs) {
  std::set<std::pair<Fault, TaskRole>> seen;
  for (const RoundPlan& plan : rounds(5, 34)) {
    for (const FaultEvent& event : plan.events) seen.insert({event.fault, event.role});
  }
  EXPECT_EQ(seen.size(), 23u);
}

TEST(FaultSchedule, ARoundHasAtMostOnePlantedFaultAndKeepsItsTaskAlive) {
  for (const RoundPlan& plan : rounds(3, 200)) {
    int planted = 0;
    double last = 0;
    for (const FaultEvent& event : plan.events) {
      if (!is_timed(event.fault)) ++planted;
      EXPECT_EQ(event.point.empty(), is_timed(event.fault));
      EXPECT_GT(event.at, last);
      EXPECT_LT(event.at, 0.9);
      last = event.at;
      EXPECT_TRUE(event.role != TaskRole::server || plan.strategy.has_servers);
    }
    EXPECT_LE(planted, 1);
    for (const FaultEvent& event : plan.events) {
      if (event.fault != Fault::shutdown) continue;
      EXPECT_EQ(event, plan.events.back());
      EXPECT_EQ(std::ranges::count(plan.events, event.role, &FaultEvent::role), 1);
    }
  }
}

TEST(FaultSchedule, AskedForFewEventsItPlansFew) {
  FaultSchedule schedule(1, choose_strategies("gossip", kSize));
  EXPECT_EQ(schedule.next(1).events.size(), 1u);
  EXPECT_EQ(schedule.next(0).events.size(), 1u);
}

RoundPlan with(FaultEvent event, const std::string& strategy = "averaging-sync") {
  return {.number = 1, .strategy = choose_strategies(strategy, kSize).front(), .events = {event}};
}

TEST(PlantedFaults, NameTheTaskThePointAndThePassing) {
  const FaultEvent step{
      .fault = Fault::step, .role = TaskRole::worker, .at = 0.5, .pick = 3, .point = "worker.step"};
  EXPECT_EQ(planted_faults(with(step), kSize, 800), "worker-2:worker.step=kill@400");
  const FaultEvent chief{
      .fault = Fault::exit, .role = TaskRole::chief, .at = 0.5, .pick = 3, .point = "worker.step"};
  EXPECT_EQ(planted_faults(with(chief), kSize, 800), "worker-0:worker.step=exit@400");
  // Servers hear of every eighth step.
  const FaultEvent server{.fault = Fault::step,
                          .role = TaskRole::server,
                          .at = 0.5,
                          .pick = 3,
                          .point = "server.before-commit"};
  EXPECT_EQ(planted_faults(with(server), kSize, 800), "server-1:server.before-commit=kill@50");
  const FaultEvent start{.fault = Fault::start,
                         .role = TaskRole::worker,
                         .at = 0.5,
                         .pick = 0,
                         .point = "worker.start"};
  EXPECT_EQ(planted_faults(with(start), kSize, 800), "worker-1:worker.start=kill@1");
  EXPECT_THAT(planted_faults(with({.point = ""}), kSize, 800), IsEmpty());
}

TEST(Strategies, AnUnknownNameIsRefused) {
  try {
    choose_strategies("allreduce,gosip", kSize);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("gossip"));
  }
  EXPECT_EQ(choose_strategies("", kSize).size(), 10u);
}

}  // namespace
}  // namespace cohort
