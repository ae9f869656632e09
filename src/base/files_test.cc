// Files as they are, and as somebody could have made them to do harm: FIFOs, devices, links, a disk
// that is full. What is written appears as a whole or not at all, and what fails names its path.

#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/fail.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;

ErrorCode code_of(const std::function<void()>& act, const std::string& words) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(words));
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown; expected " << words;
  return ErrorCode::invalid;
}

std::ptrdiff_t entries_of(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

class Files : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "file";
};

TEST_F(Files, WhatIsWrittenIsRead) {
  std::string bytes(200'000, 'x');
  bytes[70'000] = '\0';
  write_file_atomically(path_, bytes);
  EXPECT_EQ(read_file(path_), bytes);
  write_file_atomically(path_, "");
  EXPECT_EQ(read_file(path_), "");
  EXPECT_EQ(entries_of(folder_.path()), 1) << "a temporary file was left";
}

TEST_F(Files, ReadingAMissingFileSaysWhich) {
  EXPECT_EQ(code_of([&] { read_file(path_); }, path_), ErrorCode::not_found);
}

TEST_F(Files, AFolderIsRefused) {
  EXPECT_EQ(code_of([&] { read_file(folder_.path()); }, folder_.path()), ErrorCode::invalid);
}

/// Nobody writes to it, so opening it the ordinary way would wait for ever.
TEST_F(Files, AFifoIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { read_file(path_); }, path_), ErrorCode::invalid);
  EXPECT_THROW(open_to_write(path_, Existing::append), Error);
}

TEST_F(Files, ADeviceIsRefusedAlsoThroughALink) {
  EXPECT_EQ(code_of([] { read_file("/dev/zero"); }, "/dev/zero"), ErrorCode::invalid);
  fs::create_symlink("/dev/zero", path_);
  EXPECT_EQ(code_of([&] { read_file(path_); }, "not a regular file"), ErrorCode::invalid);
}

TEST_F(Files, LinksAreFollowedOnlyWhereTheyMayBe) {
  write_file_atomically(folder_.path() / "target", "words");
  fs::create_symlink("target", path_);
  EXPECT_EQ(read_file(path_), "words");
  EXPECT_EQ(code_of([&] { read_file(path_, Links::refuse); }, "is a link"), ErrorCode::invalid);
  EXPECT_EQ(code_of([&] { open_to_write(path_, Existing::empty); }, "is a link"),
            ErrorCode::invalid);
  EXPECT_EQ(read_file(folder_.path() / "target"), "words");
}

TEST_F(Files, AFileThatIsTooLargeIsNotRead) {
  write_file_atomically(path_, "12345");
  EXPECT_EQ(read_file(path_, Links::refuse, 5), "12345");
  EXPECT_EQ(code_of([&] { read_file(path_, Links::refuse, 4); }, "5 bytes"), ErrorCode::invalid);
}

TEST_F(Files, AFileLargerThanTheMemoryIsRefusedInWords) {
  write_file_atomically(path_, "");
  fs::resize_file(path_, std::uintmax_t{1} << 42);  // Sparse: it takes no disk.
  EXPECT_EQ(code_of([&] { read_file(path_); }, "memory"), ErrorCode::no_space);
}

TEST_F(Files, FilesOfTheKernelAreReadWithoutASize) {
  EXPECT_THAT(read_kernel_file("/proc/self/status"), testing::HasSubstr("VmRSS"));
  EXPECT_EQ(code_of([&] { read_kernel_file(path_); }, path_), ErrorCode::not_found);
}

TEST_F(Files, WritingToAFileAppendsOrBeginsAnew) {
  write_all(open_to_write(path_, Existing::append).get(), "one ", path_);
  write_all(open_to_write(path_, Existing::append).get(), "two", path_);
  EXPECT_EQ(read_file(path_), "one two");
  write_all(open_to_write(path_, Existing::empty).get(), "new", path_);
  EXPECT_EQ(read_file(path_), "new");
}

/// In a folder where others can write they could have put a link to a file of the user's under a
/// name that they foresee.
TEST_F(Files, NothingIsWrittenThroughALinkThatSomebodyPlanted) {
  const fs::path victim = folder_.path() / "victim";
  write_file_atomically(victim, "precious");
  fs::create_symlink(victim, path_.string() + ".part");
  fs::create_symlink(victim, path_);
  write_file_atomically(path_, "new");
  EXPECT_EQ(read_file(victim), "precious");
  EXPECT_EQ(read_file(path_, Links::refuse), "new");
}

TEST_F(Files, APrivateFolderIsItsOwnersAlone) {
  const mode_t before = ::umask(0);
  const fs::path folder = folder_.path() / "above" / "private";
  create_private_folder(folder);
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  fs::permissions(folder, fs::perms::all);
  create_private_folder(folder);
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(folder.parent_path()).permissions(), fs::perms::all);
  ::umask(before);
  write_file_atomically(path_, "");
  EXPECT_EQ(code_of([&] { create_private_folder(path_); }, "is not a folder"), ErrorCode::invalid);
  EXPECT_EQ(code_of([&] { check_own_folder(folder / "no"); }, "no folder"), ErrorCode::not_found);
}

/// Root gives one away, and a link to its own; others find one that is root's.
TEST_F(Files, AFolderOfSomebodyElseIsRefused) {
  const auto is_refused = [](const fs::path& theirs) {
    EXPECT_EQ(code_of([&] { check_own_folder(theirs); }, "another user"), ErrorCode::invalid);
    EXPECT_EQ(code_of([&] { create_private_folder(theirs); }, "another user"), ErrorCode::invalid);
  };
  if (::geteuid() != 0) return is_refused("/");
  const fs::path own = folder_.path() / "own";
  fs::create_directory(own);
  check_own_folder(own);
  fs::create_symlink(own, path_);
  check_own_folder(path_);
  ASSERT_EQ(::lchown(path_.c_str(), 12345, 12345), 0);
  is_refused(path_);
  ASSERT_EQ(::chown(own.c_str(), 12345, 12345), 0);
  is_refused(own);
}

TEST_F(Files, TheNameOfAFileThatIsNotWholeIsAnotherEveryTime) {
  AtomicFile one(path_);
  AtomicFile other(path_);
  EXPECT_EQ(entries_of(folder_.path()), 2);
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_THAT(entry.path().filename().string(), testing::StartsWith(kLeftoverPrefix));
  }
}

TEST_F(Files, WritingIntoAMissingFolderSaysWhere) {
  const fs::path lost = folder_.path() / "missing" / "file";
  EXPECT_EQ(code_of([&] { write_file_atomically(lost, "x"); }, lost), ErrorCode::io);
}

TEST_F(Files, WritingOverAFolderFailsAndLeavesNothing) {
  fs::create_directories(path_ / "inside");
  EXPECT_EQ(code_of([&] { write_file_atomically(path_, "x"); }, path_), ErrorCode::io);
  EXPECT_EQ(entries_of(folder_.path()), 1);
}

TEST_F(Files, AnAtomicFileAppearsOnlyWhenCommitted) {
  write_file_atomically(path_, "old");
  {
    AtomicFile file(path_);
    file.write("new ");
    file.write("words");
    EXPECT_EQ(read_file(path_), "old");
    file.commit();
  }
  EXPECT_EQ(read_file(path_), "new words");
}

TEST_F(Files, AnAtomicFileThatIsNotCommittedLeavesTheOldOneAlone) {
  write_file_atomically(path_, "old");
  { AtomicFile(path_).write("half of the n"); }
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(entries_of(folder_.path()), 1);
}

TEST_F(Files, AFullDiskIsNoSpace) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  EXPECT_EQ(code_of([&] { write_all(full.get(), "x", "/dev/full"); }, "/dev/full"),
            ErrorCode::no_space);
}

TEST_F(Files, FoldersAreCreatedWithThoseAboveThem) {
  const fs::path deep = folder_.path() / "a" / "b" / "c";
  create_folder(deep);
  create_folder(deep);
  EXPECT_TRUE(fs::is_directory(deep));
  EXPECT_NO_THROW(sync_folder(deep));
  write_file_atomically(path_, "in the way");
  EXPECT_EQ(code_of([&] { create_folder(path_ / "below"); }, path_ / "below"), ErrorCode::io);
  EXPECT_EQ(code_of([&] { sync_folder(path_); }, path_), ErrorCode::io);
}

TEST(TemporaryFolder, IsOnesOwnAndGoesWithItsOwner) {
  fs::path path;
  {
    const TemporaryFolder one;
    const TemporaryFolder other;
    EXPECT_NE(one.path(), other.path());
    path = one.path();
    std::ofstream(path / "file") << "x";
    EXPECT_TRUE(fs::is_directory(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace cohort
