// Proves that a death is seen at once and by rank, before and after the parent has reaped it.

#include "os/peer_watch.h"

#include <cohort/error.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cohort::os {
namespace {

/// A process that does nothing; killed and reaped with its owner at the latest.
class IdleProcess {
 public:
  IdleProcess() : pid_(::fork()) {
    if (pid_ == 0) {
      while (true) ::pause();
    }
  }
  ~IdleProcess() { end(); }
  IdleProcess(const IdleProcess&) = delete;
  IdleProcess& operator=(const IdleProcess&) = delete;

  pid_t pid() const { return pid_; }

  /// Returns when the process is a zombie: dead, but not reaped.
  void kill() {
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

  void end() {
    if (reaped_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }

 private:
  pid_t pid_;
  bool reaped_ = false;
};

TEST(PeerWatch, SeesADeathBeforeTheParentReaped) {
  IdleProcess first, second;
  const PeerWatch watch({::getpid(), first.pid(), second.pid()});
  EXPECT_EQ(watch.dead_ranks(), std::vector<int>());
  second.kill();
  EXPECT_EQ(watch.dead_ranks(), std::vector{2});
  EXPECT_TRUE(watch.is_dead(2));
  EXPECT_FALSE(watch.is_dead(1));
  first.kill();
  EXPECT_EQ(watch.dead_ranks(), (std::vector{1, 2}));
}

TEST(PeerWatch, StillKnowsAfterTheReaping) {
  IdleProcess peer;
  const PeerWatch watch({peer.pid()});
  peer.end();
  EXPECT_TRUE(watch.is_dead(0));
}

TEST(PeerWatch, NeverCountsThisProcessAsDead) {
  const PeerWatch watch({::getpid(), ::getpid()});
  EXPECT_EQ(watch.dead_ranks(), std::vector<int>());
  EXPECT_FALSE(PeerWatch().is_dead(0));
}

TEST(PeerWatch, NamesARankThatHasAlreadyEnded) {
  IdleProcess peer;
  peer.end();
  try {
    const PeerWatch watch({::getpid(), peer.pid()});
    FAIL() << "watches a process that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    EXPECT_EQ(error.rank(), 1);
  }
}

}  // namespace
}  // namespace cohort::os
