#include "launch/restart_budget.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

using namespace std::chrono_literals;

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
}  // namespace cohort
