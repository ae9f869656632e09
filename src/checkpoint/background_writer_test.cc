// The thread that writes: every result is given out once, a failure is a result, an end waits, and
// the thread neither takes signals nor competes with its owner.

#include "checkpoint/background_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "base/fail.h"

namespace cohort::checkpoint {
namespace {

Deadline soon() {
  return Deadline::in_seconds(30);
}

TEST(BackgroundWriter, GivesOutEveryResultOnce) {
  BackgroundWriter writer;
  EXPECT_FALSE(writer.busy());
  EXPECT_TRUE(writer.wait(soon()));
  EXPECT_FALSE(writer.take_result());
  for (const char* name : {"one", "two"}) {
    writer.start([name] { return std::filesystem::path(name); });
    ASSERT_TRUE(writer.wait(soon()));
    const auto result = writer.take_result();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->path, name);
    EXPECT_FALSE(result->failure);
    EXPECT_FALSE(writer.take_result());
  }
}

TEST(BackgroundWriter, IsBusyUntilTheJobHasEnded) {
  BackgroundWriter writer;
  std::promise<void> go_on;
  writer.start([&] {
    go_on.get_future().wait();
    return std::filesystem::path("done");
  });
  EXPECT_TRUE(writer.busy());
  EXPECT_FALSE(writer.wait(Deadline::in_seconds(0)));
  EXPECT_FALSE(writer.take_result());
  EXPECT_THROW(writer.start([] { return std::filesystem::path(); }), Error);
  go_on.set_value();
  EXPECT_TRUE(writer.wait(soon()));
  EXPECT_FALSE(writer.busy());
  EXPECT_EQ(writer.take_result()->path, "done");
}

TEST(BackgroundWriter, AFailureIsAResultAndTheNextJobIsDone) {
  BackgroundWriter writer;
  writer.start([]() -> std::filesystem::path { fail(ErrorCode::no_space, "the disk is full"); });
  ASSERT_TRUE(writer.wait(soon()));
  auto result = writer.take_result();
  ASSERT_TRUE(result && result->failure);
  EXPECT_EQ(result->failure->code(), ErrorCode::no_space);
  EXPECT_STREQ(result->failure->what(), "the disk is full");

  writer.start([]() -> std::filesystem::path { throw std::runtime_error("something else"); });
  ASSERT_TRUE(writer.wait(soon()));
  EXPECT_STREQ(writer.take_result()->failure->what(), "something else");

  writer.start([] { return std::filesystem::path("well"); });
  ASSERT_TRUE(writer.wait(soon()));
  EXPECT_FALSE(writer.take_result()->failure);
}

TEST(BackgroundWriter, ItsEndWaitsForTheJob) {
  std::atomic<bool> done = false;
  {
    BackgroundWriter writer;
    writer.start([&] {
      done = true;
      return std::filesystem::path();
    });
  }
  EXPECT_TRUE(done);
}

TEST(BackgroundWriter, SignalsReachTheOwnerAndNotTheThread) {
  BackgroundWriter writer;
  bool blocked = false;
  writer.start([&] {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = ::sigismember(&mask, SIGTERM) == 1;
    return std::filesystem::path();
  });
  ASSERT_TRUE(writer.wait(soon()));
  EXPECT_TRUE(blocked);
}

TEST(BackgroundWriter, TheThreadStepsBackAndTheOwnerDoesNot) {
  BackgroundWriter writer;
  const int own = ::getpriority(PRIO_PROCESS, 0);
  int its = 0;
  writer.start([&] {
    its = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
    return std::filesystem::path();
  });
  ASSERT_TRUE(writer.wait(soon()));
  EXPECT_EQ(its, 19);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own);
}

}  // namespace
}  // namespace cohort::checkpoint
