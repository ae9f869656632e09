#include "chaos/watch/leftovers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/unique_fd.h"
#include "os/child_processes.h"

/// Each kind of thing that a run could leave is really left, by this process or by one that it
/// forks, and must be found for as long as it is there and not longer; what others have must not
/// be.

namespace cohort::chaos {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::pair<UniqueFd, int> listening_socket() {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(socket.get(), any, length), 0);
  EXPECT_EQ(::listen(socket.get(), 1), 0);
  ::getsockname(socket.get(), any, &length);
  return {std::move(socket), ntohs(address.sin_port)};
}

UniqueFd abstract_socket(const std::string& name) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  return socket;
}

TEST(Belongings, APortIsFoundWhileItIsListenedOn) {
  Belongings belongings;
  {
    const auto [socket, port] = listening_socket();
    belongings.note({::getpid()});
    EXPECT_THAT(belongings.left(), Contains(HasSubstr(fmt::format("port {} ", port))));
  }
  EXPECT_THAT(belongings.left(), IsEmpty());
}

TEST(Belongings, WhatOthersHaveIsNotTakenForTheirs) {
  Belongings belongings;
  belongings.note({::getpid()});
  const auto before = belongings.left();
  const auto [socket, port] = listening_socket();
  EXPECT_EQ(belongings.left(), before);
}

TEST(Belongings, ASocketNamedAfterAProcessIsFound) {
  Belongings belongings;
  belongings.note({::getpid()});
  const UniqueFd socket = abstract_socket(fmt::format("cohort-{}-left", ::getpid()));
  EXPECT_THAT(belongings.left(), ElementsAre(HasSubstr("-left")));
}

TEST(Belongings, SharedMemoryIsFoundUntilItsNameIsGone) {
  const std::string name = fmt::format("/chaos-test-{}", ::getpid());
  const UniqueFd file(::shm_open(name.c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_TRUE(file);
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  void* memory = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
  Belongings belongings;
  belongings.note({::getpid()});
  EXPECT_THAT(belongings.left(), ElementsAre(HasSubstr(name)));
  ::shm_unlink(name.c_str());
  ::munmap(memory, 4096);
  EXPECT_THAT(belongings.left(), IsEmpty());
}

/// A process that has what `hold` gives it until it is ended, by whoever destroys this.
class Holder {
 public:
  template <class Hold>
  explicit Holder(Hold hold) {
    process_.start(
        [&] {
          [[maybe_unused]] const auto held = hold();
          const char ready = 1;
          if (::write(ends_[1], &ready, 1) != 1) return 1;
          for (;;) ::pause();
          return 0;
        },
        "");
    char ready = 0;
    EXPECT_EQ(::read(ends_[0], &ready, 1), 1);
  }
  ~Holder() {
    process_.signal_all(SIGKILL);
    while (process_.running() > 0) process_.reap();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  pid_t pid() const { return process_.pid(0); }

 private:
  static std::array<int, 2> pipe_ends() {
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(::pipe(ends.data()), 0);
    return ends;
  }

  const std::array<int, 2> ends_ = pipe_ends();
  os::ChildProcesses process_;
};

UniqueFd memory(const char* name) {
  UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(file.get(), 4096), 0);
  return file;
}

/// What a process leaks is found for as long as it is there, and not longer.
template <class Hold>
void expect_found_while_held(Hold hold, const std::string& words) {
  Belongings belongings;
  {
    const Holder leaking(hold);
    belongings.note({leaking.pid()});
    EXPECT_THAT(belongings.left(), Contains(HasSubstr(words)));
  }
  EXPECT_THAT(belongings.left(), IsEmpty());
}

TEST(Belongings, APlantedLeakOfEachKindIsFound) {
  expect_found_while_held([] { return listening_socket().first; }, "is still listened on");
  expect_found_while_held([] { return abstract_socket(fmt::format("planted-{}", ::getpid())); },
                          "unix socket @planted-");
  expect_found_while_held([] { return memory("planted"); }, "memfd:planted");
  // Without a descriptor, only mapped.
  expect_found_while_held(
      [] { return ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, memory("mapped").get(), 0); },
      "memfd:mapped");
  expect_found_while_held(
      [] { return ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0); },
      "/dev/zero");
}

TEST(Belongings, AnyProcessThatStillHoldsMemoryOfTheRunIsNamed) {
  const UniqueFd shared = memory("inherited");
  const Holder stranger([&] { return UniqueFd(::dup(shared.get())); });
  Belongings belongings;
  belongings.note({::getpid()});
  EXPECT_THAT(belongings.left(), Contains(AllOf(HasSubstr(fmt::format("{} ", stranger.pid())),
                                                HasSubstr("memfd:inherited"))));
}

TEST(Belongings, MemoryOfOthersIsNotTakenForTheirs) {
  Belongings belongings;
  const Holder innocent([] { return 0; });
  belongings.note({innocent.pid()});
  const auto before = belongings.left();
  const UniqueFd mine = memory("mine");
  EXPECT_EQ(belongings.left(), before);
}

TEST(Orphans, AChildsChildBecomesOursWhenItsParentEnds) {
  adopt_orphans();
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      for (;;) ::pause();
    }
    const auto written = ::write(pipe_ends[1], &grandchild, sizeof grandchild);
    ::_exit(written == sizeof grandchild ? 0 : 1);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(pipe_ends[0], &grandchild, sizeof grandchild), ssize_t(sizeof grandchild));
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(child_processes(::getpid()), ElementsAre(grandchild));
  ::kill(grandchild, SIGKILL);
  ::waitpid(grandchild, nullptr, 0);
  EXPECT_THAT(child_processes(::getpid()), IsEmpty());
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

}  // namespace
}  // namespace cohort::chaos
