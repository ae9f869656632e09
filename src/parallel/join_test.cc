// A program that was started alone, and how one ends that nobody catches an Error in. What ranks of
// several processes do is in tests/own_loop_test.py.

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "cluster/exit_code.h"
#include "parallel/parallel_test_support.h"

namespace cohort::parallel {
namespace {

TEST(Join, AProgramStartedAloneIsAGroupOfOne) {
  const Group group = join();
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.world(), 1);
  EXPECT_EQ(group.local_world(), 1);
  EXPECT_EQ(group.hosts(), 1);
  EXPECT_EQ(group.engine(), "alone");
  const torch::Tensor tensor = torch::full({3}, 2.0F);
  group.all_reduce(tensor, Reduce::mean);
  EXPECT_TRUE(torch::equal(tensor, torch::full({3}, 2.0F)));
  EXPECT_EQ(group.split(7).world(), 1);
  group.barrier();
}

TEST(Join, WhatMakesNoSenseIsRefused) {
  const auto refused = [](const JoinOptions& options) {
    return error_of([&] { join(options); }).code();
  };
  EXPECT_EQ(refused({.timeout_seconds = 0}), ErrorCode::invalid);
  EXPECT_EQ(refused({.threads = -1}), ErrorCode::invalid);
}

TEST(Join, VariablesThatAreThereInPartAreNamed) {
  ::setenv("RANK", "1", 1);
  const Error error = error_of([] { join(); });
  ::unsetenv("RANK");
  EXPECT_EQ(error.code(), ErrorCode::invalid);
  EXPECT_THAT(error.what(), ::testing::HasSubstr("WORLD_SIZE is not set"));
}

template <class Thrown>
void end_by(const Thrown& thrown) {
  cluster::end_with_last_words();
  std::thread([&] { throw thrown; }).join();
}

TEST(LastWordsDeathTest, AnErrorNobodyCatchesEndsWithItsSentenceAndCode) {
  EXPECT_EXIT(end_by(Error(ErrorCode::peer_lost, "rank 3 was lost")),
              ::testing::ExitedWithCode(138), "^cohort: rank 3 was lost\n$");
  EXPECT_EXIT(end_by(Error(ErrorCode::invalid, "no")), ::testing::ExitedWithCode(2), "cohort: no");
  EXPECT_EXIT(end_by(std::runtime_error("of the program's own")),
              ::testing::KilledBySignal(SIGABRT), "of the program's own");
}

}  // namespace
}  // namespace cohort::parallel
