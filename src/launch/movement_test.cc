#include "launch/movement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort {
namespace {

using testing::ElementsAre;

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
  control_.slot(2).step = 1;
  EXPECT_TRUE(moved());
  EXPECT_FALSE(moved());
  control_.slot(0).state = WorkerState::paused;
  EXPECT_TRUE(moved());
  EXPECT_FALSE(moved());
}

TEST_F(MovementTest, OfOthersDoesNotCount) {
  moved();
  control_.slot(1).step = 1;
  EXPECT_FALSE(moved());
}

TEST_F(MovementTest, IsBeingBusyWithSomethingLongButNotForever) {
  moved();
  {
    const Working working(control_.slot(2).activity, BusyWith::saving);
    EXPECT_TRUE(moved());
    EXPECT_TRUE(moved()) << "as long as it takes";
    EXPECT_FALSE(moved(Clock::now() + kLongestWork));
  }
  EXPECT_FALSE(moved());
}

TEST_F(MovementTest, IsAValidation) {
  control_.slot(0).state = WorkerState::validating;
  moved();
  EXPECT_TRUE(moved());
}

TEST_F(MovementTest, WhoWaitsForAnotherIsNotInTheWay) {
  EXPECT_THAT(in_the_way(control_, workers_), ElementsAre(0, 2));
  const Waiting chief(&control_.slot(0).activity, WaitFor::sum);
  EXPECT_THAT(in_the_way(control_, workers_), ElementsAre(2));
  const Waiting other(&control_.slot(2).activity, WaitFor::sum);
  EXPECT_THAT(in_the_way(control_, workers_), ElementsAre(0, 2)) << "nobody else is";
}

}  // namespace
}  // namespace cohort
