// Proves that descriptors travel with their bytes, that a folder for sockets is its user's alone and
// goes with the last who holds it, that leftovers of killed holders are removed, and that nobody takes
// a path where another one listens.

#include "os/endpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/fail.h"
#include "os/memory.h"
#include "os/peer_watch.h"
#include "os/private_folder.h"
#include "os/tcp_socket.h"

namespace cohort::os {
namespace {

Deadline in_time() {
  return Deadline::in_seconds(60);
}

TEST(Endpoint, ADescriptorTravelsWithItsBytes) {
  const PrivateFolder folder;
  const Listener listener = listen_at(unix_endpoint(folder.path() + "/here"));
  const UniqueFd one = connect_at(listener.endpoint, in_time());
  ASSERT_TRUE(wait_for_socket(listener.socket, POLLIN, in_time()));
  const UniqueFd other = accept_from(listener.socket);
  ASSERT_TRUE(other);
  EXPECT_TRUE(is_of_this_user(other));
  const SharedMemory memory = SharedMemory::create(4096);
  ASSERT_EQ(send_with(one, "first", memory.descriptor()), 5);
  ASSERT_EQ(send_with(one, "second", -1), 6);
  std::string bytes;
  std::vector<UniqueFd> descriptors;
  while (bytes.size() < 11) {
    ASSERT_TRUE(wait_for_socket(other, POLLIN, in_time()));
    ASSERT_GT(receive_with(other, bytes, descriptors), 0);
  }
  EXPECT_EQ(bytes, "firstsecond");
  ASSERT_EQ(descriptors.size(), 1u);
  EXPECT_TRUE(::fcntl(descriptors[0].get(), F_GETFD) & FD_CLOEXEC);
  memory.data()[7] = std::byte{9};
  EXPECT_EQ(SharedMemory::adopt(std::move(descriptors[0]), 4096).data()[7], std::byte{9});
}

TEST(Endpoint, RefusesWhatIsNone) {
  for (const char* text : {"", "unix:", "here", "here:", "here:70000", "here:x"}) {
    EXPECT_THROW(listen_at(text), Error) << text;
  }
  EXPECT_THROW(listen_at(unix_endpoint("/tmp/" + std::string(200, 'x'))), Error);
}

TEST(Endpoint, APathIsOnesAloneWhileSomebodyListensThere) {
  const PrivateFolder folder;
  const std::string endpoint = unix_endpoint(folder.path() + "/here");
  auto first = std::make_unique<Listener>(listen_at(endpoint));
  try {
    listen_at(endpoint);
    FAIL() << "it was taken away from who listens there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("another process listens there"));
  }
  EXPECT_TRUE(connect_at(endpoint, in_time()));
  first.reset();  // As after a kill: the file stays.
  ASSERT_EQ(::access((folder.path() + "/here").c_str(), F_OK), 0);
  const Listener next = listen_at(endpoint);
  EXPECT_TRUE(connect_at(endpoint, in_time()));
}

TEST(PrivateFolder, IsItsUsersAloneAndGoesWithItsMaker) {
  std::string path;
  {
    const PrivateFolder folder;
    path = folder.path();
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    EXPECT_LT(path.size(), 40u) << "sockets' paths have 107 characters";
    if (::fork() == 0) {
      folder.~PrivateFolder();
      ::_exit(0);
    }
    ::wait(nullptr);
    EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "a child does not remove it";
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

// Who makes one also removes leftovers, and must not take one for a leftover that is just made.
TEST(PrivateFolder, IsNotTakenForALeftoverWhileItIsMade) {
  std::atomic<int> gone = 0;
  {
    std::vector<std::jthread> makers;
    for (int maker = 0; maker < 4; ++maker) {
      makers.emplace_back([&gone] {
        for (int round = 0; round < 300; ++round) {
          const PrivateFolder folder;
          const PrivateFolder sweeper;
          if (!std::filesystem::exists(folder.path())) ++gone;
        }
      });
    }
  }
  EXPECT_EQ(gone, 0);
}

TEST(PrivateFolder, WhatAKilledMakerLeftIsRemovedByTheNext) {
  int tell[2];
  ASSERT_EQ(::pipe(tell), 0);
  const pid_t maker = ::fork();
  if (maker == 0) {
    const PrivateFolder folder;
    std::ignore = ::write(tell[1], folder.path().c_str(), folder.path().size() + 1);
    ::raise(SIGKILL);
  }
  ::waitpid(maker, nullptr, 0);
  char path[200] = {};
  ASSERT_GT(::read(tell[0], path, sizeof(path) - 1), 0);
  const PrivateFolder living;  // Unless another program's, made just now, has removed it already.
  const PrivateFolder next;
  EXPECT_NE(::access(path, F_OK), 0);
  EXPECT_EQ(::access(living.path().c_str(), F_OK), 0) << "one that is in use stays";
  ::close(tell[0]);
  ::close(tell[1]);
}

TEST(PrivateFolder, OneOfANameIsSharedAndGoesWithTheLastHolder) {
  const std::string name = "test-" + std::to_string(::getpid());
  auto first = std::make_unique<PrivateFolder>(name);
  auto second = std::make_unique<PrivateFolder>(name);
  const std::string path = first->path();
  EXPECT_EQ(second->path(), path);
  first.reset();
  EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "the other one still has it";
  { const PrivateFolder other(name + "-other"); }
  EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "it is no leftover";
  second.reset();
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

/// A child that lives until it is killed, with all that this process has open; no longer than a test
/// may take.
pid_t fork_a_bystander() {
  const pid_t child = ::fork();
  if (child == 0) ::alarm(120);
  while (child == 0) ::pause();
  return child;
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(PrivateFolder, GoesWithItsHoldersWhateverChildrenTheyHaveForked) {
  const std::string name = "forked-" + std::to_string(::getpid());
  auto first = std::make_unique<PrivateFolder>(name);
  auto second = std::make_unique<PrivateFolder>(name);
  const std::string path = first->path();
  const pid_t child = fork_a_bystander();
  first.reset();
  EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "the other one still has it";
  second.reset();
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  end(child);
}

// They may still meet in it; when the last one has ended, it is a leftover.
TEST(PrivateFolder, OfAKilledMakerIsHeldByTheChildrenItHasForked) {
  int tell[2];
  ASSERT_EQ(::pipe(tell), 0);
  const pid_t maker = ::fork();
  if (maker == 0) {
    const PrivateFolder folder;
    const pid_t child = fork_a_bystander();
    std::ignore = ::write(tell[1], &child, sizeof(child));
    std::ignore = ::write(tell[1], folder.path().c_str(), folder.path().size() + 1);
    ::raise(SIGKILL);
  }
  ::waitpid(maker, nullptr, 0);
  pid_t child = 0;
  char path[200] = {};
  ASSERT_EQ(::read(tell[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  ASSERT_GT(::read(tell[0], path, sizeof(path) - 1), 0);
  { const PrivateFolder next; }
  EXPECT_EQ(::access(path, F_OK), 0);
  const UniqueFd end_of_child = open_pidfd(child);
  ::kill(child, SIGKILL);
  ASSERT_TRUE(wait_for_socket(end_of_child, POLLIN, in_time()));
  { const PrivateFolder next; }
  EXPECT_NE(::access(path, F_OK), 0);
  ::close(tell[0]);
  ::close(tell[1]);
}

TEST(PrivateFolder, OneOfANameIsTheSameForAllThatComeAndGo) {
  const std::string name = "crowd-" + std::to_string(::getpid());
  std::atomic<int> gone = 0;
  {
    std::vector<std::jthread> users;
    for (int user = 0; user < 4; ++user) {
      users.emplace_back([&] {
        for (int round = 0; round < 300; ++round) {
          const PrivateFolder folder(name);
          if (!std::filesystem::exists(folder.path())) ++gone;
        }
      });
    }
  }
  EXPECT_EQ(gone, 0);
}

TEST(UserFolder, IsTheSameForAllAndRefusedWhereItIsNotPrivate) {
  EXPECT_EQ(user_folder(), user_folder());
  const PrivateFolder around;
  const std::string path = around.path() + "/mine";
  make_private_folder(path);
  make_private_folder(path);
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  EXPECT_THROW(make_private_folder(path), Error);
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  const std::string link = around.path() + "/link";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_THROW(make_private_folder(link), Error);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_THROW(make_private_folder(path), Error);
}

TEST(UserFolder, StandsElsewhereWhereAnotherUserHasTakenItsName) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's folder";
  const PrivateFolder base;
  const PrivateFolder session;
  const std::string first = user_folder_in(base.path(), session.path());
  EXPECT_TRUE(first.starts_with(base.path() + "/"));
  ASSERT_EQ(::chown(first.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(user_folder_in(base.path(), session.path()).starts_with(session.path() + "/"));
  EXPECT_THROW(user_folder_in(base.path(), "/nowhere"), Error);
}

}  // namespace
}  // namespace cohort::os
