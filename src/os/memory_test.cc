// Proves that shared memory is one memory for all who attach, outlives its creator, is refused in
// words where there is no room or no memory, and grows and shrinks in place.

#include "os/memory.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/files.h"

namespace cohort::os {
namespace {

using ::testing::HasSubstr;

TEST(SharedMemory, IsZeroedAndSharedByPath) {
  const SharedMemory memory = SharedMemory::create(10'000);
  ASSERT_EQ(memory.size(), 10'000u);
  EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.size(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  const SharedMemory other = SharedMemory::attach(memory.path());
  ASSERT_EQ(other.size(), memory.size());
  ASSERT_NE(other.data(), memory.data());
  memory.data()[9'999] = std::byte{42};
  EXPECT_EQ(other.data()[9'999], std::byte{42});
}

TEST(SharedMemory, IsSharedWithAnotherProcess) {
  const SharedMemory memory = SharedMemory::create(4096);
  const std::string path = memory.path();
  const pid_t child = ::fork();
  if (child == 0) {
    SharedMemory::attach(path).data()[0] = std::byte{1};  // Through /proc of the parent.
    memory.data()[1] = std::byte{2};                      // Inherited.
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.data()[0], std::byte{1});
  EXPECT_EQ(memory.data()[1], std::byte{2});
}

TEST(SharedMemory, OutlivesItsCreatorWhileSomebodyHoldsIt) {
  SharedMemory memory = SharedMemory::create(4096);
  memory.data()[0] = std::byte{7};
  const SharedMemory other = SharedMemory::attach(memory.path());
  memory = SharedMemory();
  EXPECT_EQ(other.data()[0], std::byte{7});
}

TEST(SharedMemory, MovesWithItsMapping) {
  SharedMemory first = SharedMemory::create(4096);
  std::byte* data = first.data();
  SharedMemory second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);
}

TEST(SharedMemory, SaysHowMuchThereWasNoRoomFor) {
  try {
    SharedMemory::create(std::size_t{1} << 50);
    FAIL() << "a pebibyte was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
    EXPECT_THAT(error.what(), HasSubstr("1073741824 MiB"));
  }
}

TEST(SharedMemory, NamesThePathThatIsNotThere) {
  std::string path;
  { path = SharedMemory::create(4096).path(); }
  try {
    SharedMemory::attach(path);
    FAIL() << "attached to nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

TEST(SharedMemory, TakesPagesOnUseWhereItIsToldTo) {
  constexpr std::size_t kPage = 4096;
  const SharedMemory memory = SharedMemory::create(1000 * kPage, SharedMemory::Pages::on_use);
  const SharedMemory other = SharedMemory::attach(memory.path(), SharedMemory::Pages::on_use);
  EXPECT_EQ(memory.bytes_in_use(), 0U);
  memory.data()[500 * kPage] = std::byte{3};
  EXPECT_EQ(other.data()[500 * kPage], std::byte{3});
  EXPECT_EQ(memory.bytes_in_use(), kPage);
  EXPECT_EQ(SharedMemory::create(10 * kPage).bytes_in_use(), 10 * kPage);
}

TEST(SharedMemory, KeepsWhatStandsThereWhenItGrowsAndGivesBackTheRest) {
  constexpr std::size_t kPage = 4096;
  SharedMemory memory = SharedMemory::create(3 * kPage);
  const SharedMemory old = SharedMemory::attach(memory.path());
  for (std::size_t page = 0; page < 3; ++page) memory.data()[page * kPage] = std::byte{7};
  memory.resize(100 * kPage);
  EXPECT_EQ(memory.size(), 100 * kPage);
  EXPECT_EQ(memory.bytes_in_use(), 100 * kPage);
  EXPECT_EQ(memory.data()[2 * kPage], std::byte{7});
  memory.data()[0] = std::byte{8};
  EXPECT_EQ(old.data()[0], std::byte{8}) << "it is the same memory";
  memory.resize(2 * kPage);
  EXPECT_EQ(memory.bytes_in_use(), 2 * kPage);
  EXPECT_EQ(SharedMemory::attach(memory.path()).size(), 2 * kPage);
  memory.resize(3 * kPage);
  EXPECT_EQ(memory.data()[kPage], std::byte{7});
  EXPECT_EQ(memory.data()[2 * kPage], std::byte{0}) << "what is new is zeroed";
  SharedMemory other = SharedMemory::attach(memory.path());
  other.resize(9 * kPage);
  memory.resize(3 * kPage);
  EXPECT_EQ(SharedMemory::attach(memory.path()).size(), 3 * kPage) << "whoever made it larger";
}

/// Others say where their memory is; what they say must not make us write to a file.
TEST(SharedMemory, AFileOfADiskIsNoMemory) {
  const TemporaryFolder folder;
  struct statfs system {};
  ASSERT_EQ(::statfs(folder.path().c_str(), &system), 0);
  if (system.f_type == TMPFS_MAGIC) GTEST_SKIP() << "files are memory here";
  const auto path = folder.path() / "file";
  write_file_atomically(path, std::string(4096, 'x'));
  EXPECT_THROW(SharedMemory::attach(path), Error);
}

}  // namespace
}  // namespace cohort::os
