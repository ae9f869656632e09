// Who moves, who stands in the way, and how long a pause or a stop is waited for.

#include "launch/patience.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::launch {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

constexpr Clock::time_point kStart{};

class MovementTest : public testing::Test {
 protected:
  bool moved(Clock::time_point now = Clock::now()) {
    return movement_.look(control_, workers_, now);
  }

  ControlBlock control_{3, 0};
  const std::vector<int> workers_ = {0, 2};
  Movement movement_;
};

TEST_F(MovementTest, IsAStepOrAnotherState) {
  moved();
  EXPECT_FALSE(moved());
  control_.card(2).step = 1;
  EXPECT_TRUE(moved());
  EXPECT_FALSE(moved());
  control_.card(0).state = TaskState::paused;
  EXPECT_TRUE(moved());
  EXPECT_FALSE(moved());
}

TEST_F(MovementTest, OfOthersDoesNotCount) {
  moved();
  control_.card(1).step = 1;
  EXPECT_FALSE(moved());
}

TEST_F(MovementTest, IsBeingBusyWithSomethingLongButNotForever) {
  moved();
  {
    const Working working(control_.card(2).activity, BusyWith::saving);
    EXPECT_TRUE(moved());
    EXPECT_TRUE(moved()) << "as long as it takes";
    EXPECT_FALSE(moved(Clock::now() + kLongestWork));
  }
  EXPECT_FALSE(moved());
}

TEST_F(MovementTest, IsAValidation) {
  control_.card(0).state = TaskState::validating;
  moved();
  EXPECT_TRUE(moved());
}

TEST_F(MovementTest, WhoWaitsForAnotherIsNotInTheWay) {
  EXPECT_THAT(in_the_way(control_, workers_), ElementsAre(0, 2));
  const Waiting chief(&control_.card(0).activity, WaitFor::sum);
  EXPECT_THAT(in_the_way(control_, workers_), ElementsAre(2));
  const Waiting other(&control_.card(2).activity, WaitFor::sum);
  EXPECT_THAT(in_the_way(control_, workers_), ElementsAre(0, 2)) << "nobody else is";
}

TEST(StopGrace, LastsWhileWorkersMove) {
  StopGrace grace(kStart, 30s);
  for (auto time = 0s; time < 300s; time += 20s) {
    EXPECT_FALSE(grace.is_over(kStart + time, true, {}));
  }
  EXPECT_FALSE(grace.is_over(kStart + 300s, false, {}));
  EXPECT_TRUE(grace.is_over(kStart + 310s, false, {}));
}

TEST(StopGrace, LastsForStepsThatTakeLong) {
  StopGrace grace(kStart, 30s);
  EXPECT_FALSE(grace.is_over(kStart + 119s, false, 40s));
  EXPECT_TRUE(grace.is_over(kStart + 120s, false, 40s));
}

TEST(StopGrace, IsNotForEver) {
  StopGrace grace(kStart, 30s);
  EXPECT_FALSE(grace.is_over(kStart + StopGrace::kMost - 1s, true, {}));
  EXPECT_TRUE(grace.is_over(kStart + StopGrace::kMost, true, {}));
}

TEST(StopGrace, OutlivesAWorkerThatIsStuckSoThatTheOthersCanSave) {
  for (const Duration timeout : {Duration(1s), Duration(60s), Duration(300s)}) {
    EXPECT_GT(pause_patience(timeout), timeout) << "who waits for it gives up first";
    StopGrace grace(kStart, quiet_before_end(timeout));
    EXPECT_FALSE(grace.is_over(kStart + pause_patience(timeout) + 20s, false, {}));
  }
}

TEST(GoodLastStep, IsTheNextAverageWhereThatIsNear) {
  EXPECT_EQ(good_last_step(37, 16, 10ms), 48);
  EXPECT_EQ(good_last_step(48, 16, 10ms), 48);
  EXPECT_EQ(good_last_step(37, 1, 10ms), 37);
  EXPECT_EQ(good_last_step(0, 16, 0ms), 0);
}

TEST(GoodLastStep, IsTheFurthestWorkersWhereTheNextAverageIsFar) {
  EXPECT_EQ(good_last_step(37, 16, 1s), 37);
  EXPECT_EQ(good_last_step(37, 1'000'000'000, 10ms), 37);
  EXPECT_EQ(good_last_step(37, 16, 0ms), 37) << "nobody knows";
}

}  // namespace
}  // namespace cohort::launch
