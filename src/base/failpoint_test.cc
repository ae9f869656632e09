#include "base/failpoint.h"

#include <cohort/error.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <new>

namespace cohort {
namespace {

class FailpointTest : public testing::Test {
 protected:
  void TearDown() override { set_failpoints(""); }
};

TEST_F(FailpointTest, NothingHappensWhereNothingIsSet) {
  failpoint("here");
  set_failpoints("there=error");
  failpoint("here");
}

TEST_F(FailpointTest, HappensOnceAtThePassingItWasSetFor) {
  set_failpoints("here=error@2,there=no-space");
  failpoint("here");
  EXPECT_THROW(failpoint("here"), Error);
  failpoint("here");
  try {
    failpoint("there");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
  }
  set_failpoints("here=no-memory");
  EXPECT_THROW(failpoint("here"), std::bad_alloc);
}

TEST_F(FailpointTest, EndsTheProcess) {
  EXPECT_EXIT(
      {
        set_failpoints("here=exit");
        failpoint("here");
      },
      testing::ExitedWithCode(1), "");
  EXPECT_EXIT(
      {
        set_failpoints("here=kill");
        failpoint("here");
      },
      testing::KilledBySignal(SIGKILL), "");
}

TEST_F(FailpointTest, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THROW(set_failpoints("here"), Error);
  EXPECT_THROW(set_failpoints("here=explode"), Error);
  EXPECT_THROW(set_failpoints("here=error@0"), Error);
  EXPECT_THROW(set_failpoints("here=error@x"), Error);
}

}  // namespace
}  // namespace cohort
