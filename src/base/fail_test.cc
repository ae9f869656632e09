// Proves what excerpt() shows of texts that others wrote: short ones whole, long ones cut between
// characters, and nothing that would disturb a terminal.

#include "base/fail.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

TEST(Excerpt, AShortTextIsItself) {
  EXPECT_EQ(excerpt("oops"), "oops");
  EXPECT_EQ(excerpt(""), "");
}

TEST(Excerpt, OfALongOneThereIsTheBeginningAndTheSize) {
  EXPECT_EQ(excerpt(std::string(200'000'000, 'x'), 5), "xxxxx… (200000000 bytes)");
}

TEST(Excerpt, CharactersAreNotCutInHalf) {
  EXPECT_EQ(excerpt("aé€", 2), "a… (6 bytes)");
  EXPECT_EQ(excerpt("aé€", 3), "aé… (6 bytes)");
}

TEST(Excerpt, NothingThatMovesACursorIsShown) {
  EXPECT_EQ(excerpt("a\x1b[2J\nb\x7f"), "a [2J b ");
}

}  // namespace
}  // namespace cohort
