#include "chaos/faults/disturbance.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/files.h"
#include "os/child_processes.h"

/// A process of the test's own is stopped and goes on; the kernel tells of both by waitid. Of the
/// slow disk only the files and variables are tested here: tests/slow_disk.cc has the library.

namespace cohort::chaos {
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

  os::ChildProcesses children_;
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

TEST(SlowDisk, IsHeldByAFileThatTheRunIsToldOf) {
  const TemporaryFolder folder;
  std::string gate;
  {
    SlowDisk disk("/lib/shim.so", folder.path() / "run");
    ASSERT_EQ(disk.environment().size(), 3u);
    EXPECT_EQ(disk.environment()[0], "LD_PRELOAD=/lib/shim.so");
    EXPECT_TRUE(disk.environment()[1].ends_with("/run/checkpoints"));
    gate = disk.environment()[2].substr(std::string("SLOW_DISK_GATE=").size());
    EXPECT_FALSE(std::filesystem::exists(gate));
    disk.hold();
    EXPECT_TRUE(std::filesystem::exists(gate));
    EXPECT_FALSE(disk.keeps_waiting());
    std::ofstream(gate + ".waiting") << "";
    EXPECT_TRUE(disk.keeps_waiting());
    disk.hold();
    EXPECT_FALSE(disk.keeps_waiting()) << "somebody who waited before";
  }
  EXPECT_FALSE(std::filesystem::exists(gate)) << "nobody is kept waiting for good";
}

TEST(SlowDisk, WithoutALibraryTheRunIsLeftAlone) {
  EXPECT_TRUE(SlowDisk("", "run").environment().empty());
}

}  // namespace
}  // namespace cohort::chaos
