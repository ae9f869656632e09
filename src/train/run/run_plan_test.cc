// Which processes a launcher starts, from job and environment alone.

#include "train/run/run_plan.h"

#include <gmock/gmock.h>

namespace cohort::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Job job_of_workers(std::int64_t workers, std::int64_t servers = 0) {
  Job job;
  job.cluster.workers = workers;
  job.cluster.servers = servers;
  if (servers > 0) job.strategy.kind = "parameter-server";
  return job;
}

cluster::LaunchEnvironment launcher_of_rank(int rank, int world) {
  cluster::LaunchEnvironment environment;
  environment.rank = rank;
  environment.world = world;
  return environment;
}

TEST(RunPlan, HasAProcessPerWorkerAndServer) {
  const auto plans = plan_processes(job_of_workers(2, 1), std::nullopt);
  ASSERT_THAT(plans, SizeIs(3));
  EXPECT_THAT(plans[1].workers, ElementsAre(1));
  EXPECT_EQ(plans[1].place.local_rank, 1);
  EXPECT_EQ(plans[1].place.local_workers, 2);
  EXPECT_FALSE(plans[1].remote);
  EXPECT_THAT(plans[2].workers, IsEmpty());
  EXPECT_THAT(plans[2].servers, ElementsAre(0));
  EXPECT_TRUE(can_regroup(job_of_workers(2, 1), std::nullopt));
}

TEST(RunPlan, InGraphAllTasksAreThreadsOfOneProcess) {
  Job job = job_of_workers(2, 1);
  job.cluster.replication = "in-graph";
  const auto plans = plan_processes(job, std::nullopt);
  ASSERT_THAT(plans, SizeIs(1));
  EXPECT_THAT(plans[0].workers, ElementsAre(0, 1));
  EXPECT_THAT(plans[0].servers, ElementsAre(0));
  EXPECT_FALSE(can_regroup(job, std::nullopt));
}

TEST(RunPlan, OfSeveralLaunchersEachHasItsWorkerAndTheFirstTheServers) {
  const Job job = job_of_workers(2, 1);
  const auto first = plan_processes(job, launcher_of_rank(0, 2));
  const auto second = plan_processes(job, launcher_of_rank(1, 2));
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_THAT(first[1].servers, ElementsAre(0));
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_THAT(second[0].workers, ElementsAre(1));
  EXPECT_TRUE(second[0].remote);
  EXPECT_FALSE(can_regroup(job, launcher_of_rank(1, 2)));
  EXPECT_EQ(most_workers(job, launcher_of_rank(1, 2)), 2);
}

TEST(RunPlan, TheEnvironmentsNumberOfWorkersWins) {
  const Variables variables = {
      {"RANK", "2"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "here"}, {"MASTER_PORT", "1234"}};
  const auto environment = environment_of(variables);
  ASSERT_TRUE(environment);
  EXPECT_EQ(environment->rank, 2);
  EXPECT_FALSE(environment_of({}));
}

TEST(RunPlan, ThereMayBeAsManyWorkersAsHaveASampleOfEachBatch) {
  Job job = job_of_workers(2);
  job.train.batch = 12;
  EXPECT_EQ(most_workers(job, std::nullopt), 12);
  job.train.accumulate = 3;
  EXPECT_EQ(most_workers(job, std::nullopt), 4);
  job.train.batch = 1;
  EXPECT_EQ(most_workers(job, std::nullopt), 2) << "those that it begins with";
  job.cluster.workers = 1025;
  EXPECT_THROW(most_workers(job, std::nullopt), Error);
}

TEST(RunPlan, FaultsArePlantedInTheTaskTheyName) {
  auto plans = plan_processes(job_of_workers(2, 1), std::nullopt);
  plant_faults(
      plans, "worker-1:worker.step=kill@20;server-0:server.start=kill;worker-1:worker.pause=kill");
  EXPECT_EQ(plans[0].failpoints, "");
  EXPECT_EQ(plans[1].failpoints, "worker.step=kill@20,worker.pause=kill");
  EXPECT_EQ(plans[2].failpoints, "server.start=kill");
  for (const char* wrong : {"worker-7:worker.step=kill", "worker-1", "worker-1:worker.step=sing"}) {
    EXPECT_THROW(plant_faults(plans, wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace cohort::training
