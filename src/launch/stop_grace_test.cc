#include "launch/stop_grace.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

using namespace std::chrono_literals;

constexpr Clock::time_point kStart{};

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
}  // namespace cohort
