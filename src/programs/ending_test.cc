// Proves who is sent which signal when, with invented moments.

#include "programs/ending.h"

#include <gtest/gtest.h>

namespace cohort::programs {
namespace {

using namespace std::chrono_literals;

constexpr Clock::time_point kStart{1h};
const Patience kPatience{.notice = 1s, .terminate = 5s, .save = 600s};

TEST(Ending, AFailureEndsTheOthersByTermAndThenByKill) {
  Ending ending(kPatience);
  EXPECT_EQ(ending.wait(kStart), std::nullopt);
  ending.rank_failed(kStart);
  EXPECT_EQ(ending.due(kStart), std::nullopt);
  EXPECT_EQ(ending.wait(kStart), 1s);
  ending.rank_failed(kStart + 900ms);  // Another one: no more time for that.
  EXPECT_EQ(ending.due(kStart + 1s), SIGTERM);
  EXPECT_EQ(ending.due(kStart + 1s), std::nullopt) << "each once";
  EXPECT_EQ(ending.wait(kStart + 1s), 5s);
  EXPECT_EQ(ending.due(kStart + 6s), SIGKILL);
  EXPECT_EQ(ending.due(kStart + 7s), std::nullopt);
  EXPECT_EQ(ending.wait(kStart + 7s), std::nullopt);
}

TEST(Ending, WhoWasAskedHasTimeToSave) {
  Ending ending(kPatience);
  ending.asked_by(SIGTERM, kStart);
  ending.rank_failed(kStart + 1s);  // It ended by the signal.
  EXPECT_EQ(ending.due(kStart + 599s), std::nullopt);
  EXPECT_EQ(ending.due(kStart + 600s), SIGKILL);
}

TEST(Ending, ASecondInterruptEndsAllAtOnce) {
  Ending ending(kPatience);
  ending.asked_by(SIGTERM, kStart);
  ending.asked_by(SIGINT, kStart);
  EXPECT_EQ(ending.due(kStart), std::nullopt);
  ending.asked_by(SIGINT, kStart + 1s);
  EXPECT_EQ(ending.due(kStart + 1s), SIGKILL);
}

TEST(Ending, AnInterruptDoesNotProlongAFailure) {
  Ending ending(kPatience);
  ending.rank_failed(kStart);
  ending.asked_by(SIGINT, kStart + 1s);
  EXPECT_EQ(ending.due(kStart + 6s), SIGKILL);
}

}  // namespace
}  // namespace cohort::programs
