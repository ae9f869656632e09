// Proves that shared memory is one memory for all who are handed it, outlives its creator, cannot be cut
// short, is refused in words where there is no room or no memory, and grows and shrinks in place.

#include "os/memory.h"

#include <cohort/error.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/files.h"

namespace cohort::os {
namespace {

using ::testing::HasSubstr;

/// Another process's view of the memory: what it adopts from a descriptor of its own.
SharedMemory seen_by_another(const SharedMemory& memory,
                             SharedMemory::Pages pages = SharedMemory::Pages::reserved) {
  return SharedMemory::adopt(UniqueFd(::dup(memory.descriptor())), memory.size(), pages);
}

TEST(SharedMemory, IsZeroedAndSharedByItsDescriptor) {
  const SharedMemory memory = SharedMemory::create(10'000);
  ASSERT_EQ(memory.size(), 10'000u);
  EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.size(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  const SharedMemory other = seen_by_another(memory);
  ASSERT_EQ(other.size(), memory.size());
  ASSERT_NE(other.data(), memory.data());
  memory.data()[9'999] = std::byte{42};
  EXPECT_EQ(other.data()[9'999], std::byte{42});
}

TEST(SharedMemory, IsSharedWithAnotherProcess) {
  const SharedMemory memory = SharedMemory::create(4096);
  const pid_t child = ::fork();
  if (child == 0) {
    seen_by_another(memory).data()[0] = std::byte{1};
    memory.data()[1] = std::byte{2};  // Inherited.
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
  const SharedMemory other = seen_by_another(memory);
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

/// Otherwise a peer could end us: touching what is not there any more is SIGBUS.
TEST(SharedMemory, NobodyCanCutItShort) {
  const SharedMemory memory = SharedMemory::create(8192);
  const int descriptor = memory.descriptor();
  EXPECT_NE(::ftruncate(descriptor, 4096), 0);
  EXPECT_NE(::ftruncate(descriptor, 0), 0);
  EXPECT_NE(::ftruncate(descriptor, 1 << 20), 0);
  EXPECT_NE(::fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(SharedMemory, WhatIsHandedOverMustBeAsLargeAsItIsSaidToBe) {
  const SharedMemory memory = SharedMemory::create(4096);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4097}, std::size_t{1} << 60}) {
    EXPECT_THROW(SharedMemory::adopt(UniqueFd(::dup(memory.descriptor())), bytes), Error) << bytes;
  }
  const UniqueFd unsealed(::memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  EXPECT_THROW(SharedMemory::adopt(UniqueFd(::dup(unsealed.get())), 4096), Error)
      << "its holder could cut it short";
}

TEST(SharedMemory, TakesPagesOnUseWhereItIsToldTo) {
  constexpr std::size_t kPage = 4096;
  const SharedMemory memory = SharedMemory::create(1000 * kPage, SharedMemory::Pages::on_use);
  const SharedMemory other = seen_by_another(memory, SharedMemory::Pages::on_use);
  EXPECT_EQ(memory.bytes_in_use(), 0U);
  memory.data()[500 * kPage] = std::byte{3};
  EXPECT_EQ(other.data()[500 * kPage], std::byte{3});
  EXPECT_EQ(memory.bytes_in_use(), kPage);
  EXPECT_EQ(SharedMemory::create(10 * kPage).bytes_in_use(), 10 * kPage);
}

TEST(SharedMemory, KeepsWhatStandsThereWhenItGrowsAndGivesBackTheRest) {
  constexpr std::size_t kPage = 4096;
  SharedMemory memory = SharedMemory::create(3 * kPage, SharedMemory::Pages::reserved, 200 * kPage);
  const SharedMemory old = seen_by_another(memory);
  for (std::size_t page = 0; page < 3; ++page) memory.data()[page * kPage] = std::byte{7};
  memory.resize(100 * kPage);
  EXPECT_EQ(memory.size(), 100 * kPage);
  EXPECT_EQ(memory.bytes_in_use(), 100 * kPage);
  EXPECT_EQ(memory.data()[2 * kPage], std::byte{7});
  memory.data()[0] = std::byte{8};
  EXPECT_EQ(old.data()[0], std::byte{8}) << "it is the same memory";
  memory.resize(2 * kPage);
  EXPECT_EQ(memory.bytes_in_use(), 2 * kPage);
  memory.resize(3 * kPage);
  EXPECT_EQ(memory.data()[kPage], std::byte{7});
  EXPECT_EQ(memory.data()[2 * kPage], std::byte{0}) << "what is new is zeroed";
  SharedMemory other = seen_by_another(memory);
  other.resize(9 * kPage);
  memory.resize(3 * kPage);
  EXPECT_EQ(memory.bytes_in_use(), 3 * kPage) << "whoever made it larger";
  EXPECT_THROW(memory.resize(201 * kPage), Error) << "more than its capacity";
}

/// What others hand us must not make us write to a file.
TEST(SharedMemory, AFileIsNoMemory) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file";
  write_file_atomically(path, std::string(4096, 'x'));
  EXPECT_THROW(SharedMemory::adopt(UniqueFd(::open(path.c_str(), O_RDWR)), 4096), Error);
  EXPECT_THROW(SharedMemory::adopt(UniqueFd(::open("/dev/zero", O_RDWR)), 4096), Error);
  EXPECT_THROW(SharedMemory::adopt(UniqueFd(), 4096), Error);
}

}  // namespace
}  // namespace cohort::os
