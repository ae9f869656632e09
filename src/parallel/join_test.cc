// A program that was started alone, and how one ends that nobody catches an Error in. What ranks of
// several processes do is in tests/own_loop_test.py.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>

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

/// Processes that were started by hand; those that do not end well are `killed`.
void join_processes(int world, const std::string& engine, int killed,
                    const std::function<void(Group group)>& body) {
  static int runs = 0;
  const std::string port = std::to_string(20'000 + (::getpid() + 7 * runs++) % 10'000);
  std::fflush(nullptr);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < world; ++rank) {
    pids.push_back(::fork());
    if (pids.back() != 0) continue;
    ::alarm(100);  // A rank that hangs fails its test instead of stopping all.
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(world).c_str(), 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    ::setenv("MASTER_PORT", port.c_str(), 1);
    try {
      body(join({.engine = engine, .timeout_seconds = 60, .pin = false}));
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << ": " << error.what();
    }
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  for (int rank = 0; rank < world; ++rank) {
    int status = -1;
    ::waitpid(pids[static_cast<std::size_t>(rank)], &status, 0);
    EXPECT_TRUE(status == 0 || rank == killed) << "rank " << rank << "; its report is above";
  }
}

// Rank 0 serves the store, over which parts get memory and are split again.
TEST(Join, PartsOutliveTheRankThatIsNotInThem) {
  for (const char* engine : {"shm", "gloo"}) {
    join_processes(3, engine, -1, [](Group group) {
      if (group.rank() == 0) return group.split_without_me();
      std::optional<Group> part = group.split(0);
      group = *part;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      part = group.split(0, -group.rank());
      const torch::Tensor sum = part->empty({3}).fill_(part->rank() + 1);
      part->all_reduce(sum);
      EXPECT_TRUE(torch::equal(sum, torch::full({3}, 3.0F)));
    });
  }
}

TEST(Join, ARankThatHasDiedIsNotAwaited) {
  join_processes(2, "gloo", 1, [](Group group) {
    group.barrier();
    if (group.rank() == 1) ::raise(SIGKILL);
  });
}

// The other one lives, is far from its next call, and goes only when the first has gone.
TEST(Join, ARankWhoseGroupHasFailedAwaitsOthersForAMoment) {
  int gone[2];
  ASSERT_EQ(::pipe(gone), 0);
  join_processes(2, "shm", -1, [&](Group group) {
    group.barrier();
    char sign = 0;
    if (group.rank() == 1) {
      EXPECT_EQ(::read(gone[0], &sign, 1), 1);
      return;
    }
    std::optional<Group> last = std::move(group);
    GroupAccess::communicator(*last).end(Error(ErrorCode::not_found, "no file"));
    last.reset();
    EXPECT_EQ(::write(gone[1], &sign, 1), 1);
  });
  ::close(gone[0]);
  ::close(gone[1]);
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
