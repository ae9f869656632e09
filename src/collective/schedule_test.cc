#include "collective/schedule.h"

#include <gmock/gmock.h>

#include <functional>

#include "collective/direct.h"
#include "collective/dissemination.h"
#include "collective/ring.h"
#include "collective/schedule_check_test_support.h"
#include "collective/tree.h"

namespace cohort {
namespace {

constexpr int kLargestWorld = 33;
constexpr std::size_t kCounts[] = {0, 1, 2, 15, 16, 17, 100, 1000, 4097};

TEST(SegmentOf, CutsWholeBlocksAsEvenlyAsTheyAllow) {
  for (int parts = 1; parts <= kLargestWorld; ++parts) {
    for (const std::size_t count : kCounts) {
      std::size_t end = 0;
      std::size_t longest = 0, shortest = count;
      for (int index = 0; index < parts; ++index) {
        const Segment segment = segment_of(count, parts, index);
        EXPECT_EQ(segment.begin, end);
        EXPECT_TRUE(segment.begin % 16 == 0 || segment.begin == count);
        end = segment.end;
        longest = std::max(longest, segment.size());
        shortest = std::min(shortest, segment.size());
      }
      EXPECT_EQ(end, count);
      EXPECT_LT(longest, shortest + 32) << parts << " parts of " << count;
    }
  }
}

/// Makes the schedule of one rank.
using Maker = std::function<Schedule(int rank, int world, std::size_t count)>;

std::vector<Schedule> make_all(const Maker& maker, int world, std::size_t count) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < world; ++rank) schedules.push_back(maker(rank, world, count));
  return schedules;
}

/// Calls `check` with what `maker`'s schedules do, for every world and count. That they match, obey
/// the rules and never wait in a circle is checked here.
void for_all_cases(
    const Maker& maker,
    const std::function<void(const ScheduleOutcome&, int world, std::size_t count)>& check) {
  for (int world = 1; world <= kLargestWorld; ++world) {
    for (const std::size_t count : kCounts) {
      SCOPED_TRACE(testing::Message() << "world " << world << ", count " << count);
      const ScheduleOutcome outcome = check_schedules(make_all(maker, world, count), count);
      ASSERT_EQ(outcome.problem, "");
      check(outcome, world, count);
      if (testing::Test::HasFailure()) return;
    }
  }
}

/// The rank whose segment holds the cell.
int owner_of(std::size_t cell_begin, int world, std::size_t count) {
  int owner = 0;
  while (segment_of(count, world, owner).end <= cell_begin) ++owner;
  return owner;
}

std::size_t cells_of(const ScheduleOutcome& outcome) {
  return outcome.cuts.size() - 1;
}

struct NamedMaker {
  const char* name;
  Maker maker;
};

void PrintTo(const NamedMaker& named, std::ostream* out) {
  *out << named.name;
}

class AllReduceSchedule : public testing::TestWithParam<NamedMaker> {};

TEST_P(AllReduceSchedule, EveryPartReachesEveryRankOnceInTheSameSum) {
  for_all_cases(GetParam().maker, [](const auto& outcome, int world, std::size_t) {
    for (int rank = 0; rank < world; ++rank) {
      for (std::size_t cell = 0; cell < cells_of(outcome); ++cell) {
        EXPECT_EQ(outcome.parts[rank][cell], std::vector<int>(world, 1));
        EXPECT_EQ(outcome.sums[rank][cell], outcome.sums[0][cell]);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AllReduceSchedule,
                         testing::Values(NamedMaker{"ring", ring_all_reduce},
                                         NamedMaker{"direct", direct_all_reduce},
                                         NamedMaker{"tree", tree_all_reduce}),
                         [](const auto& instance) { return instance.param.name; });

class ReduceScatterSchedule : public testing::TestWithParam<NamedMaker> {};

TEST_P(ReduceScatterSchedule, EveryOwnerHasEveryPartOnce) {
  for_all_cases(GetParam().maker, [](const auto& outcome, int world, std::size_t count) {
    for (std::size_t cell = 0; cell < cells_of(outcome); ++cell) {
      const int owner = owner_of(outcome.cuts[cell], world, count);
      EXPECT_EQ(outcome.parts[owner][cell], std::vector<int>(world, 1));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ReduceScatterSchedule,
                         testing::Values(NamedMaker{"ring", ring_reduce_scatter},
                                         NamedMaker{"direct", direct_reduce_scatter}),
                         [](const auto& instance) { return instance.param.name; });

class AllGatherSchedule : public testing::TestWithParam<NamedMaker> {};

TEST_P(AllGatherSchedule, EveryRankHasEveryOwnersSegment) {
  for_all_cases(GetParam().maker, [](const auto& outcome, int world, std::size_t count) {
    for (int rank = 0; rank < world; ++rank) {
      for (std::size_t cell = 0; cell < cells_of(outcome); ++cell) {
        const int owner = owner_of(outcome.cuts[cell], world, count);
        EXPECT_EQ(outcome.sums[rank][cell], std::to_string(owner));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AllGatherSchedule,
                         testing::Values(NamedMaker{"ring", ring_all_gather},
                                         NamedMaker{"direct", direct_all_gather}),
                         [](const auto& instance) { return instance.param.name; });

/// Ranks at the ends and in the middle, as a share of the world.
class RootedSchedule : public testing::TestWithParam<double> {
 protected:
  static int root(int world) { return static_cast<int>(GetParam() * (world - 1)); }
};

TEST_P(RootedSchedule, BroadcastBringsTheRootsBufferToAll) {
  for_all_cases([](int rank, int world,
                   std::size_t count) { return tree_broadcast(rank, world, count, root(world)); },
                [](const auto& outcome, int world, std::size_t) {
                  for (int rank = 0; rank < world; ++rank) {
                    EXPECT_THAT(outcome.sums[rank], testing::Each(std::to_string(root(world))));
                  }
                });
}

TEST_P(RootedSchedule, ReduceBringsEveryPartToTheRootOnce) {
  for_all_cases([](int rank, int world,
                   std::size_t count) { return tree_reduce(rank, world, count, root(world)); },
                [](const auto& outcome, int world, std::size_t) {
                  EXPECT_THAT(outcome.parts[root(world)],
                              testing::Each(std::vector<int>(world, 1)));
                });
}

INSTANTIATE_TEST_SUITE_P(Roots, RootedSchedule, testing::Values(0, 0.4, 1));

TEST(Barrier, NobodyEndsBeforeAllHaveBegun) {
  for_all_cases([](int rank, int world, std::size_t) { return dissemination_barrier(rank, world); },
                [](const auto& outcome, int world, std::size_t) {
                  EXPECT_THAT(outcome.heard_of, testing::Each(std::vector<bool>(world, true)));
                });
}

TEST(DirectSchedule, SumsInTheOrderOfTheRanks) {
  const auto outcome = check_schedules(make_all(direct_all_reduce, 4, 64), 64);
  for (const auto& sums : outcome.sums) EXPECT_THAT(sums, testing::Each("(((0+1)+2)+3)"));
}

std::size_t elements_sent(const Schedule& schedule) {
  std::size_t sent = 0;
  for (const Step& step : schedule.steps) {
    for (const Action& action : step.actions) {
      if (action.kind == ActionKind::send) sent += action.segment.size();
    }
  }
  return sent;
}

TEST(RingAndDirectSchedule, SendAsLittleAsAnAllReduceCan) {
  constexpr int world = 5;
  constexpr std::size_t segment = 160;
  for (int rank = 0; rank < world; ++rank) {
    EXPECT_EQ(elements_sent(ring_all_reduce(rank, world, world * segment)), 2 * 4 * segment);
    EXPECT_EQ(elements_sent(direct_all_reduce(rank, world, world * segment)), 2 * 4 * segment);
  }
}

TEST(RingSchedule, SendsOnlyToTheNextRank) {
  for (const Step& step : ring_all_reduce(2, 5, 1000).steps) {
    for (const Action& action : step.actions) {
      EXPECT_EQ(action.peer, action.kind == ActionKind::send ? 3 : 1);
    }
  }
}

}  // namespace
}  // namespace cohort
