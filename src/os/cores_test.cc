// Proves that processes of one host get cores of their own, all of them together all.

#include "os/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace cohort::os {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Cores, AreDividedIntoNeighbours) {
  const std::vector<int> cores = {0, 2, 4, 6, 8};
  EXPECT_THAT(share_of_cores(cores, 0, 2), ElementsAre(0, 2));
  EXPECT_THAT(share_of_cores(cores, 1, 2), ElementsAre(4, 6, 8));
  EXPECT_THAT(share_of_cores(cores, 0, 1), ElementsAre(0, 2, 4, 6, 8));
}

TEST(Cores, AreSharedByAllWhereThereAreTooFew) {
  EXPECT_THAT(share_of_cores({0, 1}, 2, 3), IsEmpty());
}

TEST(Cores, BindTheThreadThatAsks) {
  std::vector<int> bound;
  const int core = usable_core_numbers().back();
  std::thread([&] {
    run_on_cores({core});
    bound = usable_core_numbers();
  }).join();
  EXPECT_THAT(bound, ElementsAre(core));
}

}  // namespace
}  // namespace cohort::os
