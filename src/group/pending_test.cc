// The queue of started calls: order, failures, deadlines, and what its end waits for.

#include "group/pending.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <latch>

#include "base/fail.h"

namespace cohort::group {
namespace {

using ::testing::ElementsAre;

TEST(WorkQueue, WorksInTheOrderOfTheCallsAndIsIdleAfterwards) {
  WorkQueue queue;
  EXPECT_TRUE(queue.idle());
  std::vector<int> done;
  std::latch may_begin(1);
  std::shared_ptr<Pending> last;
  for (int i = 0; i < 4; ++i) {
    last = queue.start({}, [&, i] {
      may_begin.wait();
      done.push_back(i);
    });
  }
  EXPECT_FALSE(queue.idle());
  may_begin.count_down();
  last->wait(std::nullopt);
  EXPECT_TRUE(queue.idle());
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3));
}

TEST(WorkQueue, KeepsTheCallAndThrowsItsFailureWheneverAsked) {
  WorkQueue queue;
  const auto failing = queue.start({.operation = Operation::split, .number = 8},
                                   [] { fail(ErrorCode::corrupt, "it went wrong"); });
  const auto working = queue.start({}, [] {});
  EXPECT_EQ(failing->call().number, 8u);
  for (int time = 0; time < 2; ++time) {
    try {
      failing->wait(std::nullopt);
      ADD_FAILURE() << "it worked";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
    }
  }
  working->wait(std::nullopt);
}

TEST(WorkQueue, GivesUpWaitingAtADeadlineButNotTheWork) {
  WorkQueue queue;
  std::latch may_end(1);
  const auto started =
      queue.start({.operation = Operation::barrier, .number = 2}, [&] { may_end.wait(); });
  try {
    started->wait(Deadline::in_seconds(0.01));
    ADD_FAILURE() << "it is done";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_STREQ(error.what(), "barrier (call 2 of the group) is not done in time");
  }
  may_end.count_down();
  started->wait(std::nullopt);
}

TEST(WorkQueue, LetsGoOfWhatWorkHoldsOnceItIsDone) {
  WorkQueue queue;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  const auto started = queue.start({}, [held = std::move(held)] {});
  started->wait(std::nullopt);
  EXPECT_TRUE(seen.expired());
}

TEST(WorkQueue, EndsWhenAllIsDone) {
  int done = 0;
  {
    WorkQueue queue;
    for (int i = 0; i < 10; ++i) queue.start({}, [&] { ++done; });
  }
  EXPECT_EQ(done, 10);
}

}  // namespace
}  // namespace cohort::group
