// Which of several losses is to blame, in which words, and how often the lost are replaced.

#include "launch/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace cohort::launch {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

TaskFailure lost_peer(int rank) {
  return {.number = rank, .code = ErrorCode::peer_lost, .message = "rank 2 is gone"};
}

TEST(Failure, ADeathOutranksWhatItCausesInOthers) {
  std::vector<TaskFailure> failures = {
      lost_peer(0), lost_peer(1), {.number = 2, .signal = SIGKILL}};
  sort_by_cause(failures);
  EXPECT_EQ(failures[0].number, 2);
  EXPECT_EQ(exit_code(failures[0]), 138);
}

TEST(Failure, AnErrorOfItsOwnOutranksALostPeer) {
  std::vector<TaskFailure> failures = {
      lost_peer(0),
      {.number = 1, .code = ErrorCode::diverged, .message = "the loss is not finite"}};
  sort_by_cause(failures);
  EXPECT_EQ(failures[0].number, 1);
  EXPECT_EQ(exit_code(failures[0]), 1);
}

TEST(Failure, IsNamedWithRankStepSignalAndLog) {
  const TaskFailure killed{
      .number = 3, .pid = 77, .step = 120, .signal = SIGKILL, .log = "logs/worker-3.log"};
  EXPECT_EQ(describe(killed),
            "worker 3 (pid 77, after step 120) was killed by SIGKILL; log: logs/worker-3.log");
  TaskFailure starved = killed;
  starved.out_of_memory = true;
  EXPECT_THAT(describe(starved), HasSubstr("out of memory"));
  EXPECT_THAT(describe(lost_peer(1)), HasSubstr(": rank 2 is gone"));
}

TEST(Failure, WrongUseIsTwoAndRetryIs138) {
  EXPECT_EQ(cluster::exit_code(ErrorCode::invalid), 2);
  EXPECT_EQ(cluster::exit_code(ErrorCode::not_found), 2);
  EXPECT_EQ(cluster::exit_code(ErrorCode::timeout), 138);
  EXPECT_EQ(cluster::exit_code(ErrorCode::no_space), 1);
}

TEST(Failure, IsHopelessWhereANewProcessWouldMeetWithTheSame) {
  EXPECT_TRUE(is_hopeless({.code = ErrorCode::diverged}));
  EXPECT_TRUE(is_hopeless({.code = ErrorCode::no_space}));
  EXPECT_FALSE(is_hopeless({.code = ErrorCode::io}));
  EXPECT_FALSE(is_hopeless(lost_peer(1)));
  EXPECT_FALSE(is_hopeless({.signal = SIGKILL, .code = ErrorCode::diverged}));
}

TEST(RestartBudgetTest, NoneAreAllowedWhereTheMostIsZero) {
  EXPECT_FALSE(RestartBudget(0).take("worker 1", Clock::now()));
}

TEST(RestartBudgetTest, OnlyTheLastTenMinutesCount) {
  RestartBudget budget(2);
  const auto start = Clock::now();
  EXPECT_TRUE(budget.take("worker 0", start));
  EXPECT_TRUE(budget.take("worker 1", start + 5min));
  EXPECT_FALSE(budget.take("worker 2", start + 9min));
  EXPECT_TRUE(budget.take("worker 2", start + 11min));
  EXPECT_EQ(budget.taken(), 3);
}

TEST(RestartBudgetTest, WhoDiesAgainSoonWaitsLongerAndLonger) {
  RestartBudget budget(100);
  const auto start = Clock::now();
  EXPECT_EQ(*budget.take("worker 0", start), 0s);
  EXPECT_EQ(*budget.take("worker 0", start + 1s), 1s);
  EXPECT_EQ(*budget.take("worker 0", start + 3s), 2s);
  EXPECT_EQ(*budget.take("worker 0", start + 6s), 4s);
  EXPECT_EQ(*budget.take("server 0", start + 7s), 0s) << "another task starts at once";
  for (int i = 0; i < 10; ++i) budget.take("worker 0", start + 8s);
  EXPECT_EQ(*budget.take("worker 0", start + 9s), 30s);
  EXPECT_EQ(*budget.take("worker 0", start + 5min), 0s);
}

}  // namespace
}  // namespace cohort::launch
