// Plays the stranger before a door: who does not know the secret, repeats old proofs, sends rubbish,
// or nothing at all, is not let in, and keeps no member out.

#include "cluster/doorkeeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "base/fail.h"
#include "cluster/cluster_test_support.h"
#include "os/tcp_socket.h"

namespace cohort::cluster {
namespace {

using ::testing::HasSubstr;

template <class Plain>
void send_plain(const UniqueFd& socket, const Plain& plain) {
  ASSERT_EQ(::send(socket.get(), &plain, sizeof(plain), MSG_NOSIGNAL),
            static_cast<ssize_t>(sizeof(plain)));
}

/// A door whose owner does nothing but let in.
class DoorTest : public ::testing::TestWithParam<std::string> {
 protected:
  DoorTest()
      : pass_(Pass::draw()),
        door_(GetParam() == "unix" ? pass_.endpoint_of("unix:door") : "127.0.0.1:0", pass_,
              Purpose::calls) {}

  UniqueFd connect() { return os::connect_at(door_.endpoint(), soon()); }
  UniqueFd meet_at_door() {
    return meet(
        {pass_.secret, Purpose::calls, {}, "the door"}, [this] { return connect(); }, soon());
  }

  /// Who was let in until `enough`, or until the deadline.
  std::vector<Doorkeeper::Admitted> admit_until(const std::function<bool()>& enough) {
    std::vector<Doorkeeper::Admitted> all;
    const Deadline deadline = soon();
    while (!deadline.passed()) {
      std::vector<pollfd> sockets;
      door_.add_to(sockets);
      ::poll(sockets.data(), sockets.size(), 10);
      for (auto& admitted : door_.look()) all.push_back(std::move(admitted));
      if (enough()) break;
    }
    return all;
  }

  /// The answer of the door to an opening, while it looks.
  Answer answer_to(const UniqueFd& socket) {
    Answer answer;
    std::size_t have = 0;
    admit_until([&] {
      const auto count = ::recv(socket.get(), reinterpret_cast<char*>(&answer) + have,
                                sizeof(answer) - have, MSG_DONTWAIT);
      if (count > 0) have += static_cast<std::size_t>(count);
      return have == sizeof(answer);
    });
    return answer;
  }

  /// Whether the door closes the connection; whoever it lets in meanwhile fails the test.
  bool is_dropped(const UniqueFd& socket) {
    bool closed = false;
    const auto admitted = admit_until([&] {
      char bytes[256];
      const auto count = ::recv(socket.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
      closed = count == 0 || (count < 0 && errno == ECONNRESET);
      return closed;
    });
    EXPECT_TRUE(admitted.empty());
    return closed;
  }

  Pass pass_;
  Doorkeeper door_;
};

INSTANTIATE_TEST_SUITE_P(Places, DoorTest, ::testing::Values("unix", "tcp"),
                         [](const auto& test) { return test.param; });

TEST_P(DoorTest, LetsInAMemberAndKnowsWhoItIs) {
  const Member self{Member::Role::server, 3, 17};
  std::atomic<bool> done = false;
  std::jthread member([&] {
    const UniqueFd socket = connect();
    prove(socket, Connecting(pass_.secret, Purpose::calls, self), "the door", soon());
    send_plain(socket, 'x');
    done = true;
  });
  std::vector<Doorkeeper::Admitted> admitted;
  admitted = admit_until([&] { return done.load(); });
  for (auto& more : admit_until([&] { return true; })) admitted.push_back(std::move(more));
  ASSERT_EQ(admitted.size(), 1u);
  EXPECT_EQ(admitted[0].member, self);
  ASSERT_TRUE(os::wait_for_socket(admitted[0].socket, POLLIN, soon()));
  char first = 0;
  ASSERT_EQ(::recv(admitted[0].socket.get(), &first, 1, 0), 1);
  EXPECT_EQ(first, 'x') << "what follows the proof is for the owner";
}

TEST_P(DoorTest, DropsWhoDoesNotKnowTheSecret) {
  const UniqueFd socket = connect();
  const Connecting guess(Secret::draw(), Purpose::calls, {});
  send_plain(socket, guess.opening());
  const Answer answer = answer_to(socket);
  EXPECT_FALSE(guess.closing(answer)) << "and the door's proof is worth nothing to a stranger";
  send_plain(socket, Secret::draw().mac({}));
  EXPECT_TRUE(is_dropped(socket));
}

TEST_P(DoorTest, DropsAnEchoOfItsOwnProof) {
  const UniqueFd socket = connect();
  send_plain(socket, Connecting(Secret::draw(), Purpose::calls, {}).opening());
  send_plain(socket, answer_to(socket).proof);
  EXPECT_TRUE(is_dropped(socket));
}

TEST_P(DoorTest, DropsAProofOfAnotherConnection) {
  const Connecting member(pass_.secret, Purpose::calls, {});
  const UniqueFd first = connect();
  send_plain(first, member.opening());
  const auto closing = member.closing(answer_to(first));
  ASSERT_TRUE(closing);
  const UniqueFd second = connect();
  send_plain(second, member.opening());
  answer_to(second);
  send_plain(second, *closing);
  EXPECT_TRUE(is_dropped(second));
}

TEST_P(DoorTest, DropsAProofForAnotherPurposeOrMember) {
  const UniqueFd elsewhere = connect();
  send_plain(elsewhere, Connecting(pass_.secret, Purpose::store, {}).opening());
  EXPECT_TRUE(is_dropped(elsewhere));

  const UniqueFd socket = connect();
  const Connecting worker(pass_.secret, Purpose::calls, {.number = 1});
  Opening lie = worker.opening();
  lie.number = 0;
  send_plain(socket, lie);
  Answer answer = answer_to(socket);
  EXPECT_FALSE(worker.closing(answer)) << "the proof is over what was said";
  const UniqueFd rubbish = connect();
  send_plain(rubbish, std::array<char, 64>{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"});
  EXPECT_TRUE(is_dropped(rubbish));
}

TEST_P(DoorTest, IdleStrangersKeepNobodyOut) {
  std::vector<UniqueFd> idle;
  for (std::size_t i = 0; i < Doorkeeper::kMostStrangers + 8; ++i) {
    idle.push_back(connect());
    admit_until([] { return true; });
  }
  std::atomic<bool> done = false;
  std::jthread member([&] {
    const UniqueFd socket = meet_at_door();
    done = true;
  });
  auto admitted = admit_until([&] { return done.load(); });
  for (auto& more : admit_until([&] { return true; })) admitted.push_back(std::move(more));
  EXPECT_EQ(admitted.size(), 1u);
  std::vector<pollfd> sockets;
  door_.add_to(sockets);
  EXPECT_LE(sockets.size(), 1 + Doorkeeper::kMostStrangers);
}

// More than may be strangers at a time: none of them goes for another.
TEST_P(DoorTest, ACrowdOfMembersAllGetsIn) {
  constexpr std::size_t kMembers = Doorkeeper::kMostStrangers + 8;
  std::atomic<std::size_t> in = 0;
  std::vector<std::jthread> members;
  for (std::size_t i = 0; i < kMembers; ++i) {
    members.emplace_back([&] {
      const UniqueFd socket = meet_at_door();
      ++in;
    });
  }
  auto admitted = admit_until([&] { return in == kMembers; });
  for (auto& more : admit_until([&] { return true; })) admitted.push_back(std::move(more));
  EXPECT_EQ(admitted.size(), kMembers);
}

// Many times more than may be strangers at a time, and all of them there before the member: who says
// nothing keeps it waiting for no patience to end.
TEST_P(DoorTest, SilentStrangersGoAtOnceWhereAMemberWaits) {
  std::vector<UniqueFd> silent;
  for (std::size_t i = 0; i < 10 * Doorkeeper::kMostStrangers; ++i) silent.push_back(connect());
  const UniqueFd member = connect();
  const Connecting connecting(pass_.secret, Purpose::calls, {.number = 3});
  send_plain(member, connecting.opening());
  std::vector<Doorkeeper::Admitted> admitted;
  bool answered = false;
  // Looks are counted, not seconds.
  for (int look = 0; look < 10 && admitted.empty(); ++look) {
    for (auto& one : door_.look()) admitted.push_back(std::move(one));
    Answer answer;
    if (answered || ::recv(member.get(), &answer, sizeof(answer), MSG_DONTWAIT) <= 0) continue;
    answered = true;
    send_plain(member, connecting.closing(answer).value());
  }
  ASSERT_EQ(admitted.size(), 1u);
  EXPECT_EQ(admitted[0].member.number, 3);
}

/// Whether the door answers an opening in so many looks, which are counted, and not timed.
bool is_answered(Doorkeeper& door, const UniqueFd& socket, Answer& answer) {
  for (int look = 0; look < 10; ++look) {
    EXPECT_TRUE(door.look().empty());
    if (::recv(socket.get(), &answer, sizeof(answer), MSG_DONTWAIT) > 0) return true;
  }
  return false;
}

// One descriptor is left, and two are at the door. (Without any, UBSan cannot look at the type of
// `this`.)
TEST_P(DoorTest, WhoHasSpokenIsHeardWhereDescriptorsRunOut) {
  const UniqueFd member = connect();
  const Connecting connecting(pass_.secret, Purpose::calls, {.number = 3});
  send_plain(member, connecting.opening());
  const UniqueFd waits = connect();
  std::vector<Doorkeeper::Admitted> admitted;
  Doorkeeper& door = door_;
  {
    const DescriptorsLeft last(1);
    Answer answer;
    EXPECT_TRUE(is_answered(door, member, answer));
    send_plain(member, connecting.closing(answer).value_or(Closing{}));
    for (int look = 0; look < 10 && admitted.empty(); ++look) admitted = door.look();
    EXPECT_TRUE(door.look().empty());
    EXPECT_FALSE(door.is_taking()) << "there is no descriptor for the other";
  }
  ASSERT_EQ(admitted.size(), 1u);
  EXPECT_EQ(admitted[0].member.number, 3);
}

TEST_P(DoorTest, WhoIsSilentMakesRoomWhereDescriptorsRunOut) {
  const UniqueFd silent = connect();
  const UniqueFd member = connect();
  const Connecting connecting(pass_.secret, Purpose::calls, {.number = 3});
  send_plain(member, connecting.opening());
  Doorkeeper& door = door_;
  {
    const DescriptorsLeft last(1);
    Answer answer;
    EXPECT_TRUE(is_answered(door, member, answer));
  }
  EXPECT_TRUE(is_dropped(silent));
}

// It would ask for ten seconds otherwise, as one that a door in a crowd has dropped.
TEST_P(DoorTest, AMemberOfAnotherBuildIsToldSoAtOnce) {
  const UniqueFd socket = connect();
  Opening opening = Connecting(pass_.secret, Purpose::calls, {}).opening();
  opening.magic += 1 << 24;  // "CHA2"
  send_plain(socket, opening);
  EXPECT_EQ(answer_to(socket), Answer{}) << "which proves nothing";
  EXPECT_TRUE(is_dropped(socket));
}

TEST_P(DoorTest, AMemberGivesUpAtOnceWhereTheDoorIsOfAnotherBuild) {
  int asked = 0;
  std::atomic<bool> done = false;
  std::jthread member([&] {
    const Error error = error_of([&] { meet_at_door(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), HasSubstr("another build"));
    done = true;
  });
  std::vector<pollfd> sockets;
  door_.add_to(sockets);
  while (!done) {
    if (::poll(sockets.data(), 1, 10) <= 0) continue;
    ++asked;
    const UniqueFd socket(::accept(sockets[0].fd, nullptr, nullptr));
    Opening opening;
    EXPECT_EQ(::recv(socket.get(), &opening, sizeof(opening), MSG_WAITALL),
              static_cast<ssize_t>(sizeof(opening)));
    send_plain(socket, Answer{});
  }
  EXPECT_EQ(asked, 1);
}

// As a door in a crowd drops it.
TEST_P(DoorTest, AMemberThatIsDroppedComesAgain) {
  std::atomic<bool> done = false;
  std::jthread member([&] {
    const UniqueFd socket = meet_at_door();
    done = true;
  });
  std::vector<pollfd> sockets;
  door_.add_to(sockets);
  for (int drop = 0; drop < 3; ++drop) {
    ASSERT_GT(::poll(sockets.data(), 1, 60'000), 0);
    const UniqueFd dropped(::accept(sockets[0].fd, nullptr, nullptr));
  }
  auto admitted = admit_until([&] { return done.load(); });
  for (auto& more : admit_until([&] { return true; })) admitted.push_back(std::move(more));
  EXPECT_EQ(admitted.size(), 1u);
}

// A port or path may be somebody else's by the time a member connects.
TEST_P(DoorTest, AMemberTellsNothingToAStrangersDoor) {
  Doorkeeper other(GetParam() == "unix" ? pass_.endpoint_of("unix:other") : "127.0.0.1:0",
                   Pass::draw(), Purpose::calls);
  std::jthread stranger([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> sockets;
      other.add_to(sockets);
      ::poll(sockets.data(), sockets.size(), 10);
      EXPECT_TRUE(other.look().empty());
    }
  });
  try {
    prove(os::connect_at(other.endpoint(), soon()), Connecting(pass_.secret, Purpose::calls, {}),
          "The door", soon());
    FAIL() << "it took the stranger for one of the run";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), HasSubstr("does not know the secret"));
  }
}

TEST(DoorkeeperFiles, ASocketInAFolderGoesWithItsDoor) {
  const Pass pass = Pass::draw();
  const std::string endpoint = pass.endpoint_of("unix:door");
  const std::string path = pass.folder + "/door";
  { const Doorkeeper door(endpoint, pass, Purpose::calls); }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  const Doorkeeper next(endpoint, pass, Purpose::calls);
  EXPECT_THROW(Doorkeeper(endpoint, pass, Purpose::calls), Error) << "it is the first one's";
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
}

TEST(Pass, AnAddressLeadsNowhereButIntoTheFolder) {
  const Pass pass = Pass::draw();
  EXPECT_EQ(pass.endpoint_of("10.0.0.1:80"), "10.0.0.1:80");
  EXPECT_EQ(pass.endpoint_of("unix:rpc-1-2"), "unix:" + pass.folder + "/rpc-1-2");
  for (const char* path : {"unix:/etc/x", "unix:../x", "unix:a/b", "unix:", "unix:.."}) {
    EXPECT_THROW(pass.endpoint_of(path), Error) << path;
  }
}

}  // namespace
}  // namespace cohort::cluster
