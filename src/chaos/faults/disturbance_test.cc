#include "chaos/faults/disturbance.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "os/child_processes.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;

class DisturbanceTest : public testing::Test {
 protected:
  void SetUp() override {
    children_.start(
        [] {
          for (;;) ::pause();
          return 0;
        },
        "");
  }
  pid_t pid() const { return children_.pid(0); }

  /// Waits for the next change of the kind: WSTOPPED or WCONTINUED.
  bool comes(int change) const {
    siginfo_t info = {};
    return ::waitid(P_PID, static_cast<id_t>(pid()), &info, change) == 0;
  }

  ChildProcesses children_;
};

TEST_F(DisturbanceTest, AFrozenProcessGoesOnWhenTheTimeIsOver) {
  Disturbance freeze(pid(), Disturbance::Kind::freeze, 0.02);
  EXPECT_TRUE(comes(WSTOPPED));
  while (!freeze.over()) freeze.tick();
  EXPECT_TRUE(comes(WCONTINUED));
}

TEST_F(DisturbanceTest, AProcessGoesOnWhenNobodyDisturbsItAnyMore) {
  {
    const Disturbance freeze(pid(), Disturbance::Kind::freeze, 1000);
    EXPECT_TRUE(comes(WSTOPPED));
  }
  EXPECT_TRUE(comes(WCONTINUED));
}

TEST_F(DisturbanceTest, ASlowProcessIsStoppedAgainAndAgain) {
  Disturbance slow(pid(), Disturbance::Kind::slow, 1000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(comes(WSTOPPED));
    siginfo_t info = {};
    while (::waitid(P_PID, static_cast<id_t>(pid()), &info, WCONTINUED | WNOHANG) == 0 &&
           info.si_pid == 0) {
      slow.tick();
    }
    while (::waitid(P_PID, static_cast<id_t>(pid()), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0) {
      slow.tick();
    }
  }
}

TEST_F(DisturbanceTest, EndsWithItsProcess) {
  Disturbance freeze(pid(), Disturbance::Kind::freeze, 1000);
  const HeldProcess held(pid());
  EXPECT_FALSE(held.has_ended());
  EXPECT_TRUE(held.signal(SIGKILL));
  while (children_.reap().empty()) {
  }
  freeze.tick();
  EXPECT_TRUE(freeze.over());
  EXPECT_TRUE(held.has_ended());
  EXPECT_FALSE(held.signal(SIGKILL));
}

}  // namespace
}  // namespace cohort
