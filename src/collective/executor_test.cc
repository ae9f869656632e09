// Schedules run on threads, with messages of one and of several chunks: sums are right and the same
// bits everywhere and every time; a peer that leaves or keeps silent is named in everybody's error.

#include "collective/executor.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <cmath>
#include <optional>
#include <random>

#include "collective/algorithms.h"
#include "collective/rank_threads_test_support.h"

namespace cohort::collective {
namespace {

using testing::HasSubstr;

constexpr int kWorlds[] = {1, 2, 3, 4, 5, 8};
/// The last makes messages of several chunks.
constexpr std::size_t kCounts[] = {0, 1, 17, 4097, 600'001};

Deadline soon() {
  return Deadline::in_seconds(60);
}

std::vector<float> part_of(int rank, std::size_t count) {
  std::mt19937 random(100 + static_cast<unsigned>(rank));
  std::vector<float> part(count);
  for (float& x : part) x = static_cast<float>(random() % 20001) / 10000 - 1;
  return part;
}

struct Case {
  std::string algorithm;
  int world;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.algorithm << " of " << c.world;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* algorithm : {"ring", "direct", "tree"}) {
    for (const int world : kWorlds) cases.push_back({algorithm, world});
  }
  return cases;
}

class AllReduceRun : public testing::TestWithParam<Case> {
 protected:
  /// Every rank's result of `runs` all-reduces of the same parts, one after the other.
  static std::vector<std::vector<float>> results(std::size_t count, int runs) {
    const auto [algorithm, world] = GetParam();
    std::vector<std::vector<float>> all(static_cast<std::size_t>(world * runs));
    run_ranks(world, [&, &name = algorithm, size = world](transport::Transport& transport) {
      Executor executor(transport);
      const auto schedule = all_reduce_schedule(name, transport.rank(), size, count);
      for (int run = 0; run < runs; ++run) {
        auto buffer = part_of(transport.rank(), count);
        executor.run(schedule, buffer, 3, soon());
        all[static_cast<std::size_t>(run * size + transport.rank())] = std::move(buffer);
      }
    });
    return all;
  }
};

TEST_P(AllReduceRun, IsTheSumAndTheSameBitsEverywhereAndEveryTime) {
  for (const std::size_t count : kCounts) {
    const auto all = results(count, 2);
    std::vector<double> expected(count);
    for (int rank = 0; rank < GetParam().world; ++rank) {
      const auto part = part_of(rank, count);
      for (std::size_t i = 0; i < count; ++i) expected[i] += part[i];
    }
    double largest_error = 0;
    for (std::size_t i = 0; i < count; ++i) {
      largest_error = std::max(largest_error, std::abs(all[0][i] - expected[i]));
    }
    EXPECT_LT(largest_error, 4e-6) << count << " floats";
    for (const auto& result : all) EXPECT_TRUE(result == all[0]) << count << " floats";
  }
}

INSTANTIATE_TEST_SUITE_P(AlgorithmsAndWorlds, AllReduceRun, testing::ValuesIn(all_cases()),
                         [](const auto& instance) {
                           return instance.param.algorithm + std::to_string(instance.param.world);
                         });

TEST(Executor, SumsInTheOrderOfTheRanks) {
  constexpr int world = 5;
  constexpr std::size_t count = 4097;
  std::vector<float> expected(count);
  for (int rank = 0; rank < world; ++rank) {
    const auto part = part_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) expected[i] += part[i];
  }
  run_ranks(world, [&](transport::Transport& transport) {
    Executor executor(transport);
    auto buffer = part_of(transport.rank(), count);
    executor.run(direct_all_reduce(transport.rank(), world, count), buffer, 1, soon());
    EXPECT_TRUE(buffer == expected) << "rank " << transport.rank();
  });
}

TEST(Executor, RefusesABufferShorterThanTheSchedule) {
  run_ranks(1, [](transport::Transport& transport) {
    Executor executor(transport);
    std::vector<float> buffer(10);
    EXPECT_THROW(executor.run(ring_all_reduce(0, 2, 100), buffer, 1, soon()), Error);
  });
}

TEST(Executor, APeerThatLeavesMidwayFailsEveryoneWithItsName) {
  constexpr int world = 4;
  constexpr int leaver = 2;
  std::vector<std::optional<Error>> errors(world);
  run_ranks(world, [&](transport::Transport& transport) {
    auto schedule = ring_all_reduce(transport.rank(), world, 100'000);
    if (transport.rank() == leaver) schedule.steps.resize(2);
    Executor executor(transport);
    std::vector<float> buffer(100'000, 1);
    try {
      executor.run(schedule, buffer, 1, soon());
    } catch (const Error& error) {
      errors[transport.rank()] = error;
    }
    transport.close();
  });
  bool leaver_named = false;
  for (int rank = 0; rank < world; ++rank) {
    if (rank == leaver) continue;
    ASSERT_TRUE(errors[rank]) << "rank " << rank;
    EXPECT_EQ(errors[rank]->code(), ErrorCode::peer_lost);
    EXPECT_THAT(errors[rank]->what(), HasSubstr("ring all-reduce, step "));
    leaver_named |= errors[rank]->rank() == leaver;
  }
  EXPECT_TRUE(leaver_named);
}

TEST(Executor, LeavesTheTransportOpenForWhoHasSomethingToTell) {
  const auto ends = transport::make_inproc_group(3);
  Executor executor(*ends[0]);
  std::vector<float> buffer(32, 1);
  ends[1]->close();
  EXPECT_THROW(executor.run_unclosed(direct_all_reduce(0, 3, 32), buffer, 7, soon()), Error);
  std::vector<std::byte> word(1);
  const auto taken = ends[2]->irecv(0, 8, word);
  const auto told = ends[0]->isend(2, 8, word);
  ends[0]->wait(*told, soon());
  ends[2]->wait(*taken, soon());
  EXPECT_THROW(executor.run(direct_all_reduce(0, 3, 32), buffer, 7, soon()), Error);
  EXPECT_THROW(ends[0]->isend(2, 8, word), Error) << "run() closes it";
}

TEST(Executor, ASilentPeerIsATimeoutThatSaysWhereItHappened) {
  const auto ends = transport::make_inproc_group(2);
  Executor executor(*ends[0]);
  std::vector<float> buffer(32, 1);
  try {
    executor.run(ring_all_reduce(0, 2, 32), buffer, 7, Deadline::in_seconds(0.01));
    FAIL() << "an all-reduce ended without its peer";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_EQ(error.rank(), 1);
    EXPECT_THAT(error.what(),
                HasSubstr("ring all-reduce, step 1 of 2, receiving 16 floats from rank 1: "));
  }
}

}  // namespace
}  // namespace cohort::collective
