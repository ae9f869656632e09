#include "base/memory_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/fail.h"

namespace cohort {
namespace {

TEST(MemoryRoom, IsSomethingAndNotEverything) {
  EXPECT_GT(memory_room(), 1u << 20);
  EXPECT_LT(memory_room(), std::uint64_t{1} << 60);
  EXPECT_NO_THROW(check_memory_room("the samples", 4096));
}

TEST(MemoryRoom, TooMuchIsRefusedInWords) {
  try {
    check_memory_room("the samples", std::uint64_t{1} << 60);
    FAIL() << "2^60 bytes were allowed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
    EXPECT_THAT(error.what(), testing::StartsWith("the samples would take 1099511627776 MiB"));
  }
}

TEST(MemoryRoom, TheProcessesOwnLimitCounts) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  rlimit narrow = before;
  narrow.rlim_cur = std::uint64_t{64} << 40;  // More than is ever used, less than no limit.
  if (before.rlim_max != RLIM_INFINITY && before.rlim_max < narrow.rlim_cur) GTEST_SKIP();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &narrow), 0);
  EXPECT_LT(memory_room(), narrow.rlim_cur);
  EXPECT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
}

}  // namespace
}  // namespace cohort
