#include "chaos/faults/planted_fault.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort {
namespace {

using testing::IsEmpty;

constexpr ClusterSize kTasks{.workers = 3, .servers = 2};

RoundPlan with(FaultEvent event, const std::string& strategy = "averaging-sync") {
  return {.number = 1, .strategy = choose_strategies(strategy, kTasks).front(), .events = {event}};
}

TEST(PlantedFaults, NameTheTaskThePointAndThePassing) {
  const FaultEvent step{
      .fault = Fault::step, .role = TaskRole::worker, .at = 0.5, .pick = 3, .point = "worker.step"};
  EXPECT_EQ(planted_faults(with(step), kTasks, 800), "worker-2:worker.step=kill@400");
  const FaultEvent chief{
      .fault = Fault::exit, .role = TaskRole::chief, .at = 0.5, .pick = 3, .point = "worker.step"};
  EXPECT_EQ(planted_faults(with(chief), kTasks, 800), "worker-0:worker.step=exit@400");
  // Servers hear of every eighth step.
  const FaultEvent server{.fault = Fault::step,
                          .role = TaskRole::server,
                          .at = 0.5,
                          .pick = 3,
                          .point = "server.before-commit"};
  EXPECT_EQ(planted_faults(with(server), kTasks, 800), "server-1:server.before-commit=kill@50");
  const FaultEvent start{.fault = Fault::start,
                         .role = TaskRole::worker,
                         .at = 0.5,
                         .pick = 0,
                         .point = "worker.start"};
  EXPECT_EQ(planted_faults(with(start), kTasks, 800), "worker-1:worker.start=kill@1");
  EXPECT_THAT(planted_faults(with({.point = ""}), kTasks, 800), IsEmpty());
}

TEST(PlantedFaults, OfARecoveryComeAfterTheFirstGroup) {
  FaultEvent event{
      .fault = Fault::meanwhile, .role = TaskRole::worker, .at = 0.5, .pick = 0, .point = ""};
  for (const auto& [point, passing] : {std::pair{"worker.pause", 1},
                                       {"worker.carry", 1},
                                       {"worker.rendezvous", 2},
                                       {"worker.joined", 2}}) {
    event.point = point;
    EXPECT_EQ(planted_faults(with(event), kTasks, 800),
              fmt::format("worker-1:{}=kill@{}", point, passing));
  }
}

TEST(PlantedFaults, WorkersThatMakeFewerStepsThanOthersComeByThemToo) {
  FaultEvent event{.fault = Fault::between_pushes,
                   .role = TaskRole::worker,
                   .at = 0.5,
                   .pick = 0,
                   .point = "worker.between-pushes"};
  EXPECT_EQ(planted_faults(with(event, "server-sync"), kTasks, 800),
            "worker-1:worker.between-pushes=kill@400");
  EXPECT_EQ(planted_faults(with(event, "server-async"), kTasks, 800),
            "worker-1:worker.between-pushes=kill@100");
  EXPECT_EQ(planted_faults(with(event, "averaging-partial"), kTasks, 800),
            "worker-1:worker.between-pushes=kill@12");
}

}  // namespace
}  // namespace cohort
