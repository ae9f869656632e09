// Proves that copies of a Timeout are given more time together, for as long as a Longer lives, and
// that "longer" never shortens. No test waits: only deadlines are compared.

#include "base/deadline.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

using namespace std::chrono_literals;

TEST(Timeout, CopiesAreGivenMoreTimeForAWhile) {
  const Timeout timeout(30s);
  const Timeout copy = timeout;
  const auto begin = Clock::now();
  {
    const Timeout::Longer longer(timeout, 1h);
    EXPECT_GE(copy.deadline().at(), begin + 1h);
    EXPECT_EQ(copy.usual(), 30s);
  }
  EXPECT_LT(copy.deadline().at(), begin + 1h);
}

TEST(Timeout, MoreIsNeverLess) {
  const Timeout timeout(2h);
  const auto begin = Clock::now();
  const Timeout::Longer longer(timeout, 1h);
  EXPECT_GE(timeout.deadline().at(), begin + 2h);
}

}  // namespace
}  // namespace cohort
