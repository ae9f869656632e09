// The `main` of every room's test program. What passes is not worth a line: a test program prints
// what failed and nothing else, so that the reason stands on the screen and not above a thousand
// lines. COHORT_TEST_LOUD=1 brings all back: each test's name and time, and what the code logs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

int main(int argc, char** argv) {
  const bool loud = std::getenv("COHORT_TEST_LOUD") != nullptr;
  GTEST_FLAG_SET(brief, !loud);  // --gtest_brief=0 still wins.
  spdlog::set_level(loud ? spdlog::level::info : spdlog::level::off);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
