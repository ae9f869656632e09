// Proves that a lock has one holder at a time, is waited for no longer than wanted, and does not
// outlive a process.

#include "os/file_lock.h"

#include <cohort/error.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/files.h"

namespace cohort::os {
namespace {

Deadline soon() {
  return Deadline::in_seconds(60);
}

TEST(FileLock, IsHeldByOneAtATime) {
  const TemporaryFolder folder;
  std::optional<FileLock> first(std::in_place, folder.path() / "lock", soon());
  EXPECT_THROW(FileLock(folder.path() / "lock", Deadline::in(Duration::zero())), Error);
  first.reset();
  EXPECT_NO_THROW(FileLock(folder.path() / "lock", Deadline::in(Duration::zero())));
}

TEST(FileLock, IsWaitedFor) {
  const TemporaryFolder folder;
  std::atomic<bool> free = false;
  std::optional<FileLock> first(std::in_place, folder.path() / "lock", soon());
  std::thread other([&] {
    const FileLock second(folder.path() / "lock", soon());
    EXPECT_TRUE(free);
  });
  free = true;
  first.reset();
  other.join();
}

TEST(FileLock, WaitsNoLongerThanItIsWanted) {
  const TemporaryFolder folder;
  const FileLock held(folder.path() / "lock", soon());
  int asked = 0;
  try {
    const FileLock second(folder.path() / "lock", soon(), [&] { return ++asked == 3; });
    ADD_FAILURE() << "two have it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  EXPECT_EQ(asked, 3);
}

TEST(FileLock, OfAProcessThatDiedIsFree) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock held(folder.path() / "lock", soon());
    ::_exit(0);  // Destroys nothing.
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(FileLock(folder.path() / "lock", Deadline::in(Duration::zero())));
}

/// A child that lives until this goes, and does nothing.
class Bystander {
 public:
  Bystander() : pid_(::fork()) {
    if (pid_ != 0) return;
    while (true) ::pause();
  }
  ~Bystander() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

TEST(FileLock, IsFreeWhateverChildrenWereForkedMeanwhile) {
  const TemporaryFolder folder;
  std::optional<FileLock> first(std::in_place, folder.path() / "lock", soon());
  const Bystander forked;
  first.reset();
  EXPECT_NO_THROW(FileLock(folder.path() / "lock", Deadline::in(Duration::zero())));
}

TEST(FileLock, IsNotLetGoOfByAChild) {
  const TemporaryFolder folder;
  std::optional<FileLock> first(std::in_place, folder.path() / "lock", soon());
  const pid_t child = ::fork();
  if (child == 0) {
    first.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_THROW(FileLock(folder.path() / "lock", Deadline::in(Duration::zero())), Error);
}

}  // namespace
}  // namespace cohort::os
