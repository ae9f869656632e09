#include "chaos/faults/fault_schedule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/error.h>

#include <set>

/// The schedule is a function of the seed, so that it is proved by drawing hundreds of rounds:
/// every fault reaches every role that can have it, and no round contradicts itself. Nothing is
/// run.

namespace cohort::chaos {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr ClusterSize kSize{.workers = 3, .servers = 2};

std::vector<RoundPlan> rounds(std::uint64_t seed, int count, const std::string& strategies = "",
                              bool slow_disk = true) {
  FaultSchedule schedule(seed, choose_strategies(strategies, kSize), slow_disk);
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
    // A round has one planted fault, of which there are 18 pairs with servers.
    std::map<std::string, std::set<std::pair<Fault, TaskRole>>> seen;
    for (const RoundPlan& plan : rounds(seed, 17 * 18)) {
      for (const FaultEvent& event : plan.events)
        seen[plan.strategy.name].insert({event.fault, event.role});
    }
    EXPECT_EQ(seen.size(), 17u);
    for (const auto& [name, pairs] : seen) {
      const bool servers = choose_strategies(name, kSize).front().servers > 0;
      EXPECT_EQ(pairs.size(), servers ? 33u : 23u) << name << ", seed " << seed;
    }
  }
}

TEST(FaultSchedule, AHundredEventsReachAllPairs) {
  std::set<std::pair<Fault, TaskRole>> seen;
  for (const RoundPlan& plan : rounds(5, 34)) {
    for (const FaultEvent& event : plan.events) seen.insert({event.fault, event.role});
  }
  EXPECT_EQ(seen.size(), 33u);
}

TEST(FaultSchedule, WhatNeedsASecondServerOrASlowDiskIsNotDrawnWithout) {
  FaultSchedule schedule(1, all_tested_strategies({.workers = 3, .servers = 1}), false);
  for (int i = 0; i < 200; ++i) {
    for (const FaultEvent& event : schedule.next(3).events) {
      EXPECT_NE(event.fault, Fault::between_pushes);
      EXPECT_NE(event.fault, Fault::slow_disk);
    }
  }
}

TEST(FaultSchedule, EveryPhaseOfARecoveryIsDisturbedAfterTheLossOfEveryRole) {
  std::set<std::pair<std::string, TaskRole>> seen;
  for (const RoundPlan& plan : rounds(2, 600)) {
    for (const FaultEvent& event : plan.events) {
      if (event.fault != Fault::meanwhile) continue;
      EXPECT_EQ(event, plan.events.front()) << "it counts the groups before it";
      EXPECT_FALSE(event.role == TaskRole::chief && event.other == TaskRole::chief);
      seen.insert({event.point, event.other});
    }
  }
  EXPECT_EQ(seen.size(), 4u * 3u);
}

TEST(FaultSchedule, ARoundHasAtMostOnePlantedFaultAndKeepsItsTaskAlive) {
  for (const RoundPlan& plan : rounds(3, 200)) {
    int planted = 0;
    double last = 0;
    for (const FaultEvent& event : plan.events) {
      if (is_planted(event.fault)) ++planted;
      EXPECT_EQ(event.point.empty(), !is_planted(event.fault));
      EXPECT_GT(event.at, last);
      EXPECT_LT(event.at, 0.9);
      last = event.at;
      EXPECT_TRUE(event.role != TaskRole::server || plan.strategy.servers > 0);
    }
    EXPECT_LE(planted, 1);
    for (const FaultEvent& event : plan.events) {
      if (event.fault != Fault::shutdown) continue;
      EXPECT_EQ(event, plan.events.back());
      EXPECT_EQ(std::ranges::count(plan.events, event.role, &FaultEvent::role), 1);
      EXPECT_EQ(std::ranges::count(plan.events, Fault::at_once, &FaultEvent::fault), 0);
    }
  }
}

TEST(FaultSchedule, AskedForFewEventsItPlansFew) {
  FaultSchedule schedule(1, choose_strategies("gossip", kSize), false);
  EXPECT_EQ(schedule.next(1).events.size(), 1u);
  EXPECT_EQ(schedule.next(0).events.size(), 1u);
}

TEST(Strategies, ThoseThatDoNotGoInStepAreThereWithTheMovementJobToo) {
  for (const TestedStrategy& strategy : all_tested_strategies(kSize)) {
    EXPECT_FALSE(strategy.movement && strategy.traits.moves_exactly) << strategy.name;
    EXPECT_EQ(strategy.movement, strategy.name.ends_with("-movement"));
  }
}

TEST(Strategies, AnUnknownNameIsRefused) {
  try {
    choose_strategies("allreduce,gosip", kSize);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("gossip"));
  }
  EXPECT_EQ(choose_strategies("", kSize).size(), 17u);
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

TEST(PlantedFaults, OfARecoveryComeAfterTheFirstGroup) {
  FaultEvent event{
      .fault = Fault::meanwhile, .role = TaskRole::worker, .at = 0.5, .pick = 0, .point = ""};
  for (const auto& [point, passing] : {std::pair{"worker.pause", 1},
                                       {"worker.carry", 1},
                                       {"worker.rendezvous", 2},
                                       {"worker.joined", 2}}) {
    event.point = point;
    EXPECT_EQ(planted_faults(with(event), kSize, 800),
              fmt::format("worker-1:{}=kill@{}", point, passing));
  }
}

TEST(PlantedFaults, WorkersThatMakeFewerStepsThanOthersComeByThemToo) {
  FaultEvent event{.fault = Fault::between_pushes,
                   .role = TaskRole::worker,
                   .at = 0.5,
                   .pick = 0,
                   .point = "worker.between-pushes"};
  EXPECT_EQ(planted_faults(with(event, "server-sync"), kSize, 800),
            "worker-1:worker.between-pushes=kill@400");
  EXPECT_EQ(planted_faults(with(event, "server-async"), kSize, 800),
            "worker-1:worker.between-pushes=kill@100");
  EXPECT_EQ(planted_faults(with(event, "averaging-partial"), kSize, 800),
            "worker-1:worker.between-pushes=kill@12");
}

}  // namespace
}  // namespace cohort::chaos
