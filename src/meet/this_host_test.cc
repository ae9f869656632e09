// Ranks of one host divide what they may use, whoever has bound them to what.

#include "meet/this_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cluster/store.h"

namespace cohort::meet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HostShare, IsAPartOfWhatSeveralMayUse) {
  const std::vector<std::vector<int>> all = {{0, 1, 2, 3}, {0, 1, 2, 3}};
  EXPECT_THAT(share_among(all, 0).cores, ElementsAre(0, 1));
  EXPECT_THAT(share_among(all, 1).cores, ElementsAre(2, 3));
  EXPECT_EQ(share_among(all, 1).cores_of_all, 4);
  EXPECT_EQ(share_among(all, 1).place.local_rank, 1);
  EXPECT_EQ(share_among(all, 1).place.local_workers, 2);
}

TEST(HostShare, IsAllOfWhatARankHasForItself) {
  const std::vector<std::vector<int>> all = {{0}, {1}};
  EXPECT_THAT(share_among(all, 0).cores, ElementsAre(0));
  EXPECT_THAT(share_among(all, 1).cores, ElementsAre(1));
  EXPECT_EQ(share_among(all, 0).cores_of_all, 2);
}

TEST(HostShare, DividesEverySocketAmongTheRanksThatAreBoundToIt) {
  const std::vector<std::vector<int>> all = {{0, 1}, {2, 3}, {0, 1}, {2, 3}};
  EXPECT_THAT(share_among(all, 0).cores, ElementsAre(0));
  EXPECT_THAT(share_among(all, 1).cores, ElementsAre(2));
  EXPECT_THAT(share_among(all, 2).cores, ElementsAre(1));
  EXPECT_THAT(share_among(all, 3).cores, ElementsAre(3));
}

TEST(HostShare, IsNoCoreOfItsOwnWhereThereAreTooFew) {
  EXPECT_THAT(share_among({{5}, {5}, {5}}, 1).cores, IsEmpty());
  EXPECT_EQ(share_among({{5}, {5}, {5}}, 1).cores_of_all, 1);
}

TEST(HostShare, RanksThatAreThreadsOfOneProcessFindOut) {
  cluster::MemoryStore store;
  const auto cores = os::usable_core_numbers();
  std::vector<HostShare> shares(2);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        shares[static_cast<std::size_t>(rank)] =
            find_host_share(store, rank, 2, Deadline::in_seconds(30));
      });
    }
  }
  for (int rank = 0; rank < 2; ++rank) {
    const HostShare& share = shares[static_cast<std::size_t>(rank)];
    EXPECT_EQ(share.place.local_rank, rank);
    EXPECT_EQ(share.cores, os::share_of_cores(cores, rank, 2));
    EXPECT_EQ(share.cores_of_all, static_cast<int>(cores.size()));
  }
}

}  // namespace
}  // namespace cohort::meet
