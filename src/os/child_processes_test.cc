// Proves that children report how they ended, write their logs, and die with their parent or their
// owner, whichever goes first.

#include "os/child_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/files.h"
#include "os/signal_watch.h"

namespace cohort::os {
namespace {

using namespace std::chrono_literals;

std::vector<ChildProcesses::End> all_ends(ChildProcesses& children) {
  SignalWatch signals;
  std::vector<ChildProcesses::End> ends;
  while (children.running() > 0) {
    for (const auto& end : children.reap()) ends.push_back(end);
    if (children.running() > 0) signals.wait(50ms);
  }
  return ends;
}

TEST(ChildProcesses, ReportsExitCodesAndWritesLogs) {
  const TemporaryFolder folder;
  const auto log = folder.path() / "child.log";
  ChildProcesses children;
  children.start([] { return 7; }, {});
  children.start([] { return std::puts("hello") >= 0 ? 0 : 1; }, log);
  std::vector<int> codes(2);
  for (const auto& end : all_ends(children)) {
    ASSERT_TRUE(WIFEXITED(end.status));
    codes[end.index] = WEXITSTATUS(end.status);
    EXPECT_GT(end.peak_rss_bytes, 0);
  }
  EXPECT_THAT(codes, ::testing::ElementsAre(7, 0));
  EXPECT_EQ(read_file(log), "hello\n");
}

TEST(ChildProcesses, AnExceptionIsAFailureNotACrash) {
  const TemporaryFolder folder;
  const auto log = folder.path() / "child.log";
  ChildProcesses children;
  children.start([]() -> int { throw std::runtime_error("no luck"); }, log);
  const auto ends = all_ends(children);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(WEXITSTATUS(ends[0].status), 1);
  EXPECT_EQ(read_file(log), "no luck\n");
}

int wait_for_ever() {
  for (;;) ::pause();
}

TEST(ChildProcesses, DieWithTheirParent) {
  int report[2];
  ASSERT_EQ(::pipe(report), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::close(report[0]);
    // The grandchild holds the pipe's writing end for as long as it lives.
    ChildProcesses children;
    const pid_t child = children.pid(children.start(wait_for_ever, {}));
    if (::write(report[1], &child, sizeof child) != sizeof child) ::_exit(1);
    ::raise(SIGKILL);
  }
  ::close(report[1]);
  pid_t child = 0;
  ASSERT_EQ(::read(report[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::waitpid(parent, nullptr, 0);
  char byte;
  EXPECT_EQ(::read(report[0], &byte, 1), 0) << "end of file: nobody holds the pipe any more";
  ::close(report[0]);
}

TEST(ChildProcesses, TheDestructorLeavesNoneBehind) {
  pid_t pid = 0;
  {
    ChildProcesses children;
    pid = children.pid(children.start(wait_for_ever, {}));
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace cohort::os
