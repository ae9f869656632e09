// Proves whose end is called the cause of the others', by invented ends.

#include "programs/first_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <vector>

namespace cohort::programs {
namespace {

// As the kernel packs them.
int exited(int code) {
  return code << 8;
}
int killed(int signal) {
  return signal;
}

int cause_among(const std::vector<RankEnd>& ends) {
  const RankEnd* cause = first_cause(ends);
  return cause == nullptr ? -1 : cause->rank;
}

TEST(FirstCause, NoneWhereAllEndedWell) {
  EXPECT_EQ(cause_among({}), -1);
  EXPECT_EQ(cause_among({{.rank = 0}, {.rank = 1}}), -1);
}

TEST(FirstCause, ASignalOutranksTheErrorsItCausedThoughTheyWereNoticedFirst) {
  EXPECT_EQ(cause_among({{.rank = 0, .status = exited(138)},
                         {.rank = 1, .status = exited(1)},
                         {.rank = 2, .status = killed(SIGSEGV)}}),
            2);
}

TEST(FirstCause, ALostPeerIsAlwaysAConsequence) {
  EXPECT_EQ(cause_among({{.rank = 0, .status = exited(138)}, {.rank = 1, .status = exited(3)}}), 1);
  EXPECT_EQ(cause_among({{.rank = 0, .status = exited(138)},
                         {.rank = 1, .status = killed(SIGSEGV), .told = true}}),
            1)
      << "it wrote its core while the others were told to end";
  EXPECT_EQ(cause_among({{.rank = 0, .status = exited(138)}, {.rank = 1, .status = exited(138)}}),
            0);
}

TEST(FirstCause, AnErrorThatNobodyCatchesIsAnErrorLikeOthers) {
  EXPECT_EQ(cause_among({{.rank = 0, .status = exited(3)}, {.rank = 1, .status = killed(SIGABRT)}}),
            0);
  EXPECT_EQ(cause_among({{.rank = 0, .status = killed(SIGABRT)}, {.rank = 1, .status = exited(3)}}),
            0);
}

TEST(FirstCause, WhoWasToldToEndIsNotToBlame) {
  EXPECT_EQ(cause_among({{.rank = 0, .status = exited(1)},
                         {.rank = 1, .status = killed(SIGTERM), .told = true, .by_us = true},
                         {.rank = 2, .status = exited(9), .told = true},
                         {.rank = 3, .status = killed(SIGSEGV), .told = true}}),
            0);
  EXPECT_EQ(cause_among({{.rank = 0, .status = exited(138), .told = true},
                         {.rank = 1, .status = killed(SIGINT), .told = true, .by_us = true}}),
            1)
      << "all were told by the user";
}

TEST(FirstCause, IsDescribedWithItsSignalOrExitCode) {
  EXPECT_EQ(describe({.rank = 3, .pid = 7, .status = exited(5)}),
            "rank 3 (pid 7) ended with exit code 5");
  EXPECT_EQ(describe({.rank = 3, .pid = 7, .status = killed(SIGKILL), .log = "logs/x"}),
            "rank 3 (pid 7) was killed by SIGKILL; log: logs/x");
  EXPECT_EQ(describe({.rank = 3, .pid = 7, .status = killed(SIGKILL), .out_of_memory = true}),
            "rank 3 (pid 7) was killed: out of memory");
  EXPECT_EQ(exit_code(RankEnd{.status = killed(SIGSEGV)}), 139);
  EXPECT_EQ(exit_code(RankEnd{.status = exited(5)}), 5);
}

}  // namespace
}  // namespace cohort::programs
