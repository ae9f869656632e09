// Sums and barriers in memory that ranks share, ranks being threads or forked processes: in the
// order of the ranks, and whoever is late, leaves or is killed is named.

#include "collective/host/host_reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include "base/fail.h"
#include "os/memory.h"

namespace cohort::collective {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;

Deadline soon() {
  return Deadline::in(20s);
}

/// Runs `body` once per rank, each in a thread, on one shared region.
void with_threads(const HostReduction::Shape& shape,
                  const std::function<void(HostReduction&)>& body) {
  const os::PrivateMemory memory(HostReduction::bytes_needed(shape));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < shape.world; ++rank) {
    threads.emplace_back([&, rank] {
      HostReduction group(rank, shape, memory.bytes(), {}, os::WaitPolicy::for_ranks(shape.world));
      body(group);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

float value_of(int rank, std::size_t i) {
  return static_cast<float>(rank + 1) * 0.1F + static_cast<float>(i % 97) * 0.01F;
}

class HostReductionWorlds : public ::testing::TestWithParam<int> {};

TEST_P(HostReductionWorlds, SumsInTheOrderOfTheRanks) {
  for (const std::size_t count : {1UL, 15UL, 16UL, 17UL, 1000UL, 40000UL}) {
    const HostReduction::Shape shape{.world = GetParam(), .contribution = count, .shared = 0};
    with_threads(shape, [&](HostReduction& group) {
      for (int round = 0; round < 3; ++round) {
        const auto mine = group.contribution(group.rank());
        for (std::size_t i = 0; i < count; ++i) mine[i] = value_of(group.rank() + round, i);
        const auto sum = group.all_reduce(count, soon());
        for (std::size_t i = 0; i < count; ++i) {
          float expected = value_of(round, i);
          for (int rank = 1; rank < group.world(); ++rank) expected += value_of(rank + round, i);
          ASSERT_EQ(sum[i], expected) << "element " << i;
        }
        group.barrier(soon(), "test");
      }
    });
  }
}

TEST_P(HostReductionWorlds, SmallSumsAreTheSameEverywhere) {
  with_threads({.world = GetParam()}, [](HostReduction& group) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> values = {1, static_cast<float>(group.rank()), 0.1F};
      group.small_sum(values, soon());
      const auto world = static_cast<float>(group.world());
      ASSERT_EQ(values[0], world);
      ASSERT_EQ(values[1], world * (world - 1) / 2);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, HostReductionWorlds, ::testing::Values(1, 2, 3, 4, 7));

TEST(HostReduction, OwnersShareAllElements) {
  const HostReduction::Shape shape{.world = 3, .contribution = 100, .shared = 100};
  std::vector<Segment> owned(3);
  with_threads(shape, [&](HostReduction& group) { owned[group.rank()] = group.owned(100); });
  EXPECT_EQ(owned[0].begin, 0U);
  EXPECT_EQ(owned[1].begin, owned[0].end);
  EXPECT_EQ(owned[2].begin, owned[1].end);
  EXPECT_EQ(owned[2].end, 100U);
}

TEST(HostReduction, WhoIsDestroyedIsMissedAtOnce) {
  const HostReduction::Shape shape{.world = 2};
  const os::PrivateMemory memory(HostReduction::bytes_needed(shape));
  HostReduction stays(0, shape, memory.bytes(), {}, os::WaitPolicy::for_ranks(2));
  HostReduction(1, shape, memory.bytes(), {}, os::WaitPolicy::for_ranks(2));
  try {
    stays.barrier(soon(), "test");
    ADD_FAILURE() << "it has come";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    EXPECT_EQ(error.rank(), 1);
  }
}

template <class T>
void expect_small_sums(HostReduction& group, std::int64_t base) {
  for (const std::size_t size : {std::size_t{1}, HostReduction::kSmallBytes / sizeof(T) + 1}) {
    std::vector<T> values(size, static_cast<T>(base + group.rank()));
    group.small_sum(values, soon());
    const int world = group.world();
    EXPECT_THAT(values, Each(static_cast<T>(world * base + world * (world - 1) / 2)));
  }
}

TEST_P(HostReductionWorlds, SmallSumsAreOfEveryTypeAndAsLongAsTheyLike) {
  with_threads({.world = GetParam()}, [](HostReduction& group) {
    expect_small_sums<float>(group, 1);
    expect_small_sums<double>(group, 1LL << 40);
    expect_small_sums<std::int64_t>(group, (1LL << 58) + 1);
  });
}

std::string complaint_of(const std::function<void()>& call, ErrorCode code, int rank) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(error.rank(), rank);
    return error.what();
  }
  return "no complaint";
}

TEST(HostBarrier, NamesTheRankThatDoesNotCome) {
  const os::PrivateMemory memory(HostBarrier::bytes_needed(3));
  HostBarrier barrier(0, 3, memory.bytes(), {}, os::WaitPolicy::for_ranks(3));
  const auto call = [&] { barrier.arrive_and_wait(Deadline::in(30ms), "gradients of step 7"); };
  EXPECT_THAT(complaint_of(call, ErrorCode::timeout, 1),
              ::testing::AllOf(HasSubstr("gradients of step 7"), HasSubstr("1, 2")));
  EXPECT_THAT(complaint_of(call, ErrorCode::peer_lost, 1), HasSubstr("rank 1"))
      << "a failed barrier stays failed";
}

TEST(HostBarrier, ARankThatLeavesIsMissedAtOnce) {
  const os::PrivateMemory memory(HostBarrier::bytes_needed(2));
  HostBarrier stays(0, 2, memory.bytes(), {}, os::WaitPolicy::for_ranks(2));
  std::thread other([&] {
    HostBarrier leaves(1, 2, memory.bytes(), {}, os::WaitPolicy::for_ranks(2));
    leaves.arrive_and_wait(soon(), "first");
    leaves.leave();
  });
  stays.arrive_and_wait(soon(), "first");
  EXPECT_THAT(
      complaint_of([&] { stays.arrive_and_wait(soon(), "second"); }, ErrorCode::peer_lost, 1),
      HasSubstr("second"));
  other.join();
}

TEST(HostBarrier, ARankWhoseProcessIsKilledIsMissed) {
  const auto memory = os::SharedMemory::create(HostBarrier::bytes_needed(2));
  const std::span<std::byte> region(memory.data(), memory.size());
  const pid_t child = ::fork();
  if (child == 0) {
    HostBarrier barrier(1, 2, region, {}, os::WaitPolicy::for_ranks(2));
    barrier.arrive_and_wait(soon(), "first");
    ::raise(SIGKILL);
  }
  HostBarrier barrier(0, 2, region, os::PeerWatch({::getpid(), child}),
                      os::WaitPolicy::for_ranks(2));
  barrier.arrive_and_wait(soon(), "first");
  EXPECT_THAT(
      complaint_of([&] { barrier.arrive_and_wait(soon(), "second"); }, ErrorCode::peer_lost, 1),
      HasSubstr("rank 1 is gone"));
  ::waitpid(child, nullptr, 0);
}

TEST(HostBarrier, OfTwoThatDiedTheOneThatHadNotArrivedIsMissed) {
  const auto memory = os::SharedMemory::create(HostBarrier::bytes_needed(3));
  const std::span<std::byte> region(memory.data(), memory.size());
  const auto end_after = [&](int rank, bool arrives) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    HostBarrier barrier(rank, 3, region, {}, os::WaitPolicy::for_ranks(3));
    if (arrives) {
      EXPECT_THROW(barrier.arrive_and_wait(Deadline::in(0ms), "only"), Error);
    }
    ::_exit(0);
  };
  const pid_t arrived = end_after(1, true);
  const pid_t missing = end_after(2, false);
  HostBarrier barrier(0, 3, region, os::PeerWatch({::getpid(), arrived, missing}),
                      os::WaitPolicy::for_ranks(3));
  ::waitpid(arrived, nullptr, 0);
  ::waitpid(missing, nullptr, 0);
  EXPECT_THAT(
      complaint_of([&] { barrier.arrive_and_wait(soon(), "only"); }, ErrorCode::peer_lost, 2),
      HasSubstr("rank 2 is gone"));
}

TEST(HostBarrier, ARankThatLeavesIsMissedAlsoWhereAnotherOneIsAwaited) {
  const os::PrivateMemory memory(HostBarrier::bytes_needed(3));
  HostBarrier leaves(2, 3, memory.bytes(), {}, os::WaitPolicy::for_ranks(3));
  leaves.leave();
  HostBarrier stays(0, 3, memory.bytes(), {}, os::WaitPolicy::for_ranks(3));
  complaint_of([&] { stays.arrive_and_wait(soon(), "only"); }, ErrorCode::peer_lost, 2);
}

}  // namespace
}  // namespace cohort::collective
