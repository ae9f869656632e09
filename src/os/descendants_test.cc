// Proves that whoever adopts orphans can end what its children have started, wherever that has gone.

#include "os/descendants.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/unique_fd.h"
#include "os/peer_watch.h"

namespace cohort::os {
namespace {

using namespace std::chrono_literals;

/// Forks a child that forks a grandchild in a session of its own and ends; returns the grandchild.
pid_t orphan() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::fork() == 0) {
      ::setsid();
      const pid_t self = ::getpid();
      if (::write(write_end.get(), &self, sizeof self) != sizeof self) ::_exit(1);
      for (;;) ::pause();
    }
    ::_exit(0);
  }
  pid_t pid = 0;
  EXPECT_EQ(::read(read_end.get(), &pid, sizeof pid), ssize_t{sizeof pid});
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return pid;
}

bool has_ended(const UniqueFd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return ::poll(&ended, 1, 60'000) == 1;
}

/// Who adopts orphans does so for ever; other tests shall not.
class Descendants : public ::testing::Test {
 protected:
  Descendants() { adopt_orphans(); }
  ~Descendants() override { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

TEST_F(Descendants, AnOrphanInASessionOfItsOwnIsEnded) {
  const pid_t pid = orphan();
  const UniqueFd process = open_pidfd(pid);
  ASSERT_TRUE(process);
  EXPECT_TRUE(end_descendants(Deadline::in(60s)));
  EXPECT_TRUE(has_ended(process));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "none is left, a zombie neither";
}

TEST_F(Descendants, OrphansThatEndAreTakenAwayAndOwnChildrenAreNot) {
  const pid_t pid = orphan();
  const UniqueFd process = open_pidfd(pid);
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(has_ended(process));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(7);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  reap_orphans([&](pid_t one) { return one == child; });
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  reap_orphans([](pid_t) { return false; });
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "the orphan too has been taken away";
}

}  // namespace
}  // namespace cohort::os
