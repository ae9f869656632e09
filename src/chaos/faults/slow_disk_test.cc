#include "chaos/faults/slow_disk.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"

namespace cohort {
namespace {

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
}  // namespace cohort
