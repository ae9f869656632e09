// Every topology, for up to 17 workers: who sends to whom is the same seen from both ends, and word
// gets from everybody to everybody in as many turns as promised.

#include "gossip/topology.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace cohort::gossip {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kWorlds = 17;
constexpr std::uint64_t kSeed = 5;

int log2_up(int world) {
  return std::bit_width(static_cast<unsigned>(world - 1));
}

// Turns after which everybody must have heard of everybody, when all take their turns together.
int enough_turns(Topology topology, int world) {
  switch (topology) {
    case Topology::all:
      return 1;
    case Topology::ring:
      return world - 1;
    case Topology::exponential:
      return log2_up(world);
    case Topology::random:
      return 5 * log2_up(world) + 5;  // Holds for this seed; the expectation is about half.
  }
  return 0;
}

class EveryTopology : public ::testing::TestWithParam<Topology> {};

TEST_P(EveryTopology, SendsToOthersOnlyAndOnlyToItsTargets) {
  for (int world = 1; world <= kWorlds; ++world) {
    for (int rank = 0; rank < world; ++rank) {
      const auto targets = targets_of(GetParam(), rank, world);
      std::set<int> seen;
      for (std::uint64_t turn = 0; turn < 400; ++turn) {
        const auto some = neighbours(GetParam(), {rank, world, kSeed}, turn);
        EXPECT_EQ(some.empty(), world == 1);
        EXPECT_EQ(std::set<int>(some.begin(), some.end()).size(), some.size());
        seen.insert(some.begin(), some.end());
      }
      EXPECT_FALSE(seen.contains(rank));
      EXPECT_EQ(std::vector<int>(seen.begin(), seen.end()), targets) << rank << " of " << world;
    }
  }
}

TEST_P(EveryTopology, HasTheSameLinksSeenFromBothEnds) {
  for (int world = 1; world <= kWorlds; ++world) {
    for (int to = 0; to < world; ++to) {
      std::vector<int> expected;
      for (int from = 0; from < world; ++from) {
        const auto targets = targets_of(GetParam(), from, world);
        if (std::ranges::count(targets, to) > 0) expected.push_back(from);
      }
      EXPECT_EQ(sources_of(GetParam(), to, world), expected);
    }
  }
}

TEST_P(EveryTopology, CarriesWordFromEverybodyToEverybody) {
  for (int world = 1; world <= kWorlds; ++world) {
    std::vector<std::set<int>> heard(static_cast<std::size_t>(world));
    for (int rank = 0; rank < world; ++rank) heard[static_cast<std::size_t>(rank)] = {rank};
    for (int turn = 0; turn < enough_turns(GetParam(), world); ++turn) {
      const auto before = heard;
      for (int rank = 0; rank < world; ++rank) {
        const auto& mine = before[static_cast<std::size_t>(rank)];
        for (const int to :
             neighbours(GetParam(), {rank, world, kSeed}, static_cast<std::uint64_t>(turn))) {
          heard[static_cast<std::size_t>(to)].insert(mine.begin(), mine.end());
        }
      }
    }
    for (const auto& of : heard) EXPECT_EQ(of.size(), static_cast<std::size_t>(world)) << world;
  }
}

INSTANTIATE_TEST_SUITE_P(Topology, EveryTopology,
                         ::testing::Values(Topology::all, Topology::ring, Topology::random,
                                           Topology::exponential),
                         [](const auto& test) {
                           return topology_table()[static_cast<std::size_t>(test.param)].name;
                         });

TEST(Topology, IsWhatItsPictureShows) {
  const GossipPlace place{.rank = 1, .world = 5};
  EXPECT_THAT(neighbours(Topology::all, place, 3), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(neighbours(Topology::ring, place, 0), ElementsAre(2));
  EXPECT_THAT(neighbours(Topology::ring, place, 1), ElementsAre(0));
  EXPECT_THAT(neighbours(Topology::exponential, place, 0), ElementsAre(2));
  EXPECT_THAT(neighbours(Topology::exponential, place, 1), ElementsAre(3));
  EXPECT_THAT(neighbours(Topology::exponential, place, 2), ElementsAre(0));
  EXPECT_THAT(neighbours(Topology::exponential, place, 3), ElementsAre(2));
  EXPECT_THAT(targets_of(Topology::ring, 0, 1), IsEmpty());
}

TEST(Topology, RandomIsEvenAndAFunctionOfSeedRankAndTurn) {
  std::map<int, int> counts;
  int changed = 0;
  for (std::uint64_t turn = 0; turn < 4000; ++turn) {
    const auto peer = neighbours(Topology::random, {2, 5, kSeed}, turn);
    EXPECT_EQ(peer, neighbours(Topology::random, {2, 5, kSeed}, turn));
    ++counts[peer.front()];
    if (peer != neighbours(Topology::random, {2, 5, kSeed + 1}, turn)) ++changed;
  }
  for (const auto& [peer, count] : counts) EXPECT_NEAR(count, 1000, 150) << peer;
  EXPECT_NEAR(changed, 3000, 200);
}

TEST(Topology, NamesTheNearestOfAnUnknownName) {
  EXPECT_EQ(topology_named("exponential"), Topology::exponential);
  try {
    topology_named("rign");
    FAIL() << "took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("ring"));
  }
}

}  // namespace
}  // namespace cohort::gossip
