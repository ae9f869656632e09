// Proves what this process says and changes of itself.

#include "os/this_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>

namespace cohort::os {
namespace {

TEST(DescriptorLimit, IsRaisedToWhatTheSystemAllows) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = before.rlim_max / 2, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(raise_descriptor_limit(), before.rlim_max);
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(EnvironmentWith, HasEveryVariableOnce) {
  ::setenv("COHORT_TEST_ONE", "old", 1);
  ::setenv("COHORT_TEST_ONE_MORE", "kept", 1);
  const auto environment = environment_with({"COHORT_TEST_ONE=new", "COHORT_TEST_TWO="});
  EXPECT_THAT(environment,
              testing::IsSupersetOf(
                  {"COHORT_TEST_ONE=new", "COHORT_TEST_ONE_MORE=kept", "COHORT_TEST_TWO="}));
  EXPECT_THAT(environment, testing::Not(testing::Contains("COHORT_TEST_ONE=old")));
  ::unsetenv("COHORT_TEST_ONE");
  ::unsetenv("COHORT_TEST_ONE_MORE");
}

TEST(EnvironmentWith, AVariableCanBeTakenOut) {
  ::setenv("COHORT_TEST_ONE", "old", 1);
  for (const std::string& entry : environment_with({"COHORT_TEST_ONE"})) {
    EXPECT_FALSE(entry.starts_with("COHORT_TEST_ONE")) << entry;
  }
  ::unsetenv("COHORT_TEST_ONE");
}

}  // namespace
}  // namespace cohort::os
