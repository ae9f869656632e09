// Every algorithm's schedules, run on symbols instead of numbers (schedule_check_test_support.h)
// for worlds of 1 to 33 ranks and counts around every edge of a segment: every part reaches every
// rank once, in the same sum, nobody waits in a circle, and no more is sent than was promised. Then
// the names: what "auto" picks, and what an unknown name is told.

#include "collective/algorithms.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <functional>
#include <numeric>

#include "collective/schedule_check_test_support.h"

namespace cohort::collective {
namespace {

using testing::HasSubstr;
using testing::Not;

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
using ScheduleOf = std::function<Schedule(int rank, int world, std::size_t count)>;

std::vector<Schedule> make_all(const ScheduleOf& maker, int world, std::size_t count) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < world; ++rank) schedules.push_back(maker(rank, world, count));
  return schedules;
}

/// Calls `check` with what `maker`'s schedules do, for every world and count. That they match, obey
/// the rules and never wait in a circle is checked here.
void for_all_cases(
    const ScheduleOf& maker,
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
  ScheduleOf maker;
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

using Hosts = std::vector<int>;

const Hosts kEven[] = {{0, 0, 1, 1},       {0, 1, 0, 1},       {0, 1, 1, 0},
                       {0, 0, 0, 1, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 1, 2, 2, 1, 0, 0, 1, 2}};

std::vector<Schedule> schedules_of(const Hosts& hosts, std::size_t count) {
  std::vector<Schedule> schedules;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    schedules.push_back(hosts_all_reduce(static_cast<int>(rank), hosts, count));
  }
  return schedules;
}

TEST(HostsSchedule, EveryPartReachesEveryRankOnceInTheSameSum) {
  for (const Hosts& hosts : kEven) {
    for (const std::size_t count : {0, 1, 16, 17, 100, 1000, 4096}) {
      SCOPED_TRACE(testing::PrintToString(hosts) + " " + std::to_string(count));
      const ScheduleOutcome outcome = check_schedules(schedules_of(hosts, count), count);
      ASSERT_EQ(outcome.problem, "");
      for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        EXPECT_EQ(outcome.sums[rank], outcome.sums[0]);
        for (const auto& parts : outcome.parts[rank]) {
          EXPECT_EQ(parts, std::vector<int>(hosts.size(), 1));
        }
      }
    }
  }
}

/// Elements that ranks of this host send to other hosts.
std::size_t sent_by(int host, const Hosts& hosts, const std::vector<Schedule>& schedules) {
  std::size_t sent = 0;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] != host) continue;
    for (const Step& step : schedules[rank].steps) {
      for (const Action& action : step.actions) {
        const bool leaves = hosts[static_cast<std::size_t>(action.peer)] != host;
        if (action.kind == ActionKind::send && leaves) sent += action.segment.size();
      }
    }
  }
  return sent;
}

TEST(HostsSchedule, AHostSendsItsShareOnceHoweverManyRanksItHas) {
  const std::size_t count = 16 * 3 * 3 * 100;
  const Hosts hosts = {0, 0, 0, 1, 1, 1, 2, 2, 2};
  const auto schedules = schedules_of(hosts, count);
  for (int host = 0; host < 3; ++host)
    EXPECT_EQ(sent_by(host, hosts, schedules), 2 * 2 * count / 3);
}

TEST(HostsSchedule, IsForHostsOfEqualSize) {
  for (const Hosts& hosts : kEven) EXPECT_TRUE(even_hosts(hosts));
  for (const Hosts& hosts : {Hosts{0, 0}, Hosts{0, 1}, Hosts{0, 0, 1}, Hosts{0}, Hosts{}}) {
    EXPECT_FALSE(even_hosts(hosts));
  }
}

TEST(HostsSchedule, IsWhatAutoMeansForLargeBuffersThere) {
  const Hosts even = {0, 0, 1, 1}, uneven = {0, 0, 1};
  EXPECT_THAT(all_reduce_schedule("auto", 0, even, 100'000).name, HasSubstr("hosts"));
  EXPECT_THAT(all_reduce_schedule("auto", 0, even, 100).name, Not(HasSubstr("hosts")));
  EXPECT_THAT(all_reduce_schedule("auto", 0, uneven, 100'000).name, HasSubstr("ring"));
  EXPECT_THAT(all_reduce_schedule("tree", 0, even, 100'000).name, HasSubstr("tree"));
}

std::string all_reduce_name(std::string_view algorithm, int world, std::size_t count) {
  return all_reduce_schedule(algorithm, 0, world, count).name;
}

TEST(MakeSchedule, KnowsEveryNameItLists) {
  for (const std::string& name : all_reduce_algorithms()) {
    EXPECT_THAT(all_reduce_name(name, 4, 100), HasSubstr(name == "auto" ? "" : name));
  }
  for (const std::string& name : segment_algorithms()) {
    const std::string expected = name == "auto" ? "" : name;
    EXPECT_THAT(reduce_scatter_schedule(name, 0, 4, 100).name, HasSubstr(expected));
    EXPECT_THAT(all_gather_schedule(name, 0, 4, 100).name, HasSubstr(expected));
  }
}

TEST(MakeSchedule, AutoTakesFewMessagesForLittleAndFewBytesForMuch) {
  EXPECT_EQ(all_reduce_name("auto", 4, 100), "direct all-reduce");
  EXPECT_EQ(all_reduce_name("auto", 32, 100), "tree all-reduce");
  EXPECT_EQ(all_reduce_name("auto", 4, 1 << 20), "ring all-reduce");
  EXPECT_EQ(all_reduce_name("auto", 32, 1 << 20), "ring all-reduce");
}

TEST(MakeSchedule, NamesTheNearestAlgorithm) {
  try {
    all_reduce_schedule("rign", 0, 2, 1);
    FAIL() << "an unknown algorithm was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), HasSubstr("\"ring\""));
  }
  EXPECT_THROW(reduce_scatter_schedule("tree", 0, 2, 1), Error);
  EXPECT_THROW(all_gather_schedule("tree", 0, 2, 1), Error);
}

}  // namespace
}  // namespace cohort::collective
