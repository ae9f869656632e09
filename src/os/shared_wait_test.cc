// Proves of every way of waiting that no change is missed, between threads and between processes,
// and that a wait ends at its deadline or when somebody gives it up.

#include "os/shared_wait.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "os/memory.h"

namespace cohort::os {
namespace {

/// Two parties take turns; zeroed memory is a valid start.
struct Turns {
  std::atomic<int> turn;
  SharedEvent changed;
};

constexpr auto kNothing = [] {};

Deadline in_a_minute() {
  return Deadline::in_seconds(60);
}

bool take_turns(Turns& turns, const SharedWait& wait, int who) {
  constexpr int kRounds = 2'000;
  for (int round = 0; round < kRounds; ++round) {
    const int mine = 2 * round + who;
    if (!wait.until(
            turns.changed, [&] { return turns.turn == mine; }, in_a_minute(), kNothing)) {
      return false;
    }
    turns.turn = mine + 1;
    turns.changed.notify();
  }
  return true;
}

class SharedWaitTest : public ::testing::TestWithParam<WaitPolicy> {};

TEST_P(SharedWaitTest, PassesTheTurnBetweenThreads) {
  Turns turns{};
  const SharedWait wait(GetParam());
  bool other = false;
  std::jthread thread([&] { other = take_turns(turns, wait, 1); });
  EXPECT_TRUE(take_turns(turns, wait, 0));
  thread.join();
  EXPECT_TRUE(other);
}

TEST_P(SharedWaitTest, PassesTheTurnBetweenProcesses) {
  const SharedMemory memory = SharedMemory::create(sizeof(Turns));
  auto& turns = *reinterpret_cast<Turns*>(memory.data());
  const SharedWait wait(GetParam());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(take_turns(turns, wait, 1) ? 0 : 1);
  EXPECT_TRUE(take_turns(turns, wait, 0));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(SharedWaitTest, GivesUpAtTheDeadline) {
  SharedEvent event;
  const auto never = [] { return false; };
  const Deadline deadline = Deadline::in_seconds(0.03);
  EXPECT_FALSE(SharedWait(GetParam()).until(event, never, deadline, kNothing));
  EXPECT_TRUE(deadline.passed());
}

TEST_P(SharedWaitTest, LooksAroundWhileItSleeps) {
  SharedEvent event;
  const auto never = [] { return false; };
  int slices = 0;
  const auto give_up = [&] {
    if (++slices == 3) throw std::runtime_error("enough");
  };
  EXPECT_THROW(SharedWait(GetParam()).until(event, never, in_a_minute(), give_up),
               std::runtime_error);
  EXPECT_EQ(slices, 3);
}

const WaitPolicy kSleepAtOnce{.busy = Duration::zero()};

std::string policy_name(const ::testing::TestParamInfo<WaitPolicy>& test) {
  if (test.param.busy == Duration::zero()) return "Sleeping";
  return test.param.yield ? "Yielding" : "Spinning";
}

INSTANTIATE_TEST_SUITE_P(Policies, SharedWaitTest,
                         ::testing::Values(WaitPolicy::for_ranks(2, 2), WaitPolicy::for_ranks(2, 1),
                                           kSleepAtOnce),
                         policy_name);

TEST(WaitPolicy, SpinsOnlyWhereEveryRankHasACore) {
  EXPECT_FALSE(WaitPolicy::for_ranks(2, 2).yield);
  EXPECT_TRUE(WaitPolicy::for_ranks(3, 2).yield);
  EXPECT_GE(usable_cores(), 1);
}

}  // namespace
}  // namespace cohort::os
