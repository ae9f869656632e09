#include "collective/make_schedule.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

namespace cohort {
namespace {

using testing::HasSubstr;

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
}  // namespace cohort
