#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "transport/test_group.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

/// More than rings and sockets hold. Sanitizers take their time for every byte.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kLarge = 16 << 20;
#else
constexpr std::size_t kLarge = 64 << 20;
#endif

using Bytes = std::vector<std::byte>;

Deadline soon() {
  return Deadline::in_seconds(120);
}

/// Bytes that differ between messages and from place to place: a tile of a prime number of bytes,
/// repeated, because to make each of 64 MiB on its own takes a minute under a sanitizer.
Bytes pattern(std::size_t size, int seed) {
  constexpr std::size_t kTile = 65521;
  Bytes bytes(size);
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761u + 1;
  for (std::size_t i = 0; i < std::min(size, kTile); ++i) {
    state = state * 1664525u + 1013904223u;
    bytes[i] = static_cast<std::byte>(state >> 24);
  }
  for (std::size_t i = kTile; i < size; i += kTile) {
    std::memcpy(&bytes[i], bytes.data(), std::min(kTile, size - i));
  }
  return bytes;
}

void send(Transport& transport, int peer, Tag tag, const Bytes& bytes) {
  transport.wait(*transport.isend(peer, tag, bytes), soon());
}

Bytes receive(Transport& transport, int peer, Tag tag, std::size_t size) {
  Bytes bytes(size);
  transport.wait(*transport.irecv(peer, tag, bytes), soon());
  return bytes;
}

/// Both directions at once, the receive started first.
Bytes exchange(Transport& transport, int peer, Tag tag, const Bytes& mine) {
  Bytes theirs(mine.size());
  const auto incoming = transport.irecv(peer, tag, theirs);
  const auto outgoing = transport.isend(peer, tag, mine);
  transport.wait(*outgoing, soon());
  transport.wait(*incoming, soon());
  return theirs;
}

/// The Error that `action` ends in; it must name `peer`.
template <class Action>
ErrorCode failure_about(int peer, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.rank(), peer) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("ank " + std::to_string(peer)));
    return error.code();
  }
  ADD_FAILURE() << "no Error about rank " << peer;
  return ErrorCode::invalid;
}

void expect_stays_failed(Transport& transport, int peer) {
  Bytes bytes(8);
  for (int time = 0; time < 2; ++time) {
    failure_about(peer, [&] { receive(transport, peer, 99, 8); });
    failure_about(peer, [&] { send(transport, peer, 99, bytes); });
  }
}

ErrorCode failed_receive(Transport& transport, int peer, Deadline deadline) {
  Bytes bytes(8);
  return failure_about(peer, [&] { transport.wait(*transport.irecv(peer, 1, bytes), deadline); });
}

/// Returns when the peer has gone.
void wait_until_gone(Transport& transport, int peer) {
  Bytes bytes(1);
  try {
    transport.wait(*transport.irecv(peer, 12345, bytes), soon());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
  }
}

class Conformance : public ::testing::TestWithParam<TestGroup> {
 protected:
  void run(int size, const RankBody& body) { GetParam().run(size, body); }
};

TEST_P(Conformance, KeepsTheOrderOfOneTag) {
  run(2, [](Transport& transport) {
    for (int i = 0; i < 200; ++i) {
      const Bytes message = pattern(static_cast<std::size_t>(i * 37 % 3000), i);
      if (transport.rank() == 0) {
        send(transport, 1, 5, message);
      } else {
        ASSERT_EQ(receive(transport, 0, 5, message.size()), message) << i;
      }
    }
  });
}

TEST_P(Conformance, KeepsTheOrderOfOneTagWithManyUnderWay) {
  run(2, [](Transport& transport) {
    constexpr int kMessages = 300;
    const int peer = 1 - transport.rank();
    std::vector<Bytes> outgoing, incoming;
    std::vector<OperationPtr> operations;
    for (int i = 0; i < kMessages; ++i) {
      outgoing.push_back(pattern(static_cast<std::size_t>(i * 101 % 5000), i));
      incoming.emplace_back(outgoing.back().size());
    }
    for (auto& bytes : incoming) operations.push_back(transport.irecv(peer, 1, bytes));
    for (auto& bytes : outgoing) operations.push_back(transport.isend(peer, 1, bytes));
    std::reverse(operations.begin(), operations.end());
    for (auto& operation : operations) transport.wait(*operation, soon());
    EXPECT_EQ(incoming, outgoing);
  });
}

TEST_P(Conformance, ReceivesTagsInAnyOrder) {
  run(2, [](Transport& transport) {
    const std::vector<Tag> tags = {0, 1, ~Tag{0}, Tag{1} << 40};
    const std::vector<std::size_t> sizes = {100, 0, 500'000, 2'000};
    std::vector<OperationPtr> sends;
    std::vector<Bytes> messages;
    for (std::size_t i = 0; i < tags.size(); ++i) {
      messages.push_back(pattern(sizes[i], static_cast<int>(i)));
    }
    if (transport.rank() == 0) {
      for (std::size_t i = 0; i < tags.size(); ++i) {
        sends.push_back(transport.isend(1, tags[i], messages[i]));
      }
      for (auto& operation : sends) transport.wait(*operation, soon());
    } else {
      for (std::size_t i = tags.size(); i-- > 0;) {
        EXPECT_EQ(receive(transport, 0, tags[i], sizes[i]), messages[i]) << i;
      }
    }
  });
}

TEST_P(Conformance, ExchangesLargeMessagesInBothDirectionsAtOnce) {
  run(2, [](Transport& transport) {
    const int rank = transport.rank();
    // EXPECT_EQ would print 64 MiB.
    EXPECT_TRUE(exchange(transport, 1 - rank, 3, pattern(kLarge, rank)) ==
                pattern(kLarge, 1 - rank));
  });
}

TEST_P(Conformance, PassesEmptyMessagesBetweenOthers) {
  run(2, [](Transport& transport) {
    const Bytes full = pattern(10, 1);
    if (transport.rank() == 0) {
      for (const Bytes& bytes : {full, Bytes(), full, Bytes()}) send(transport, 1, 8, bytes);
    } else {
      EXPECT_EQ(receive(transport, 0, 8, 10), full);
      EXPECT_EQ(receive(transport, 0, 8, 0), Bytes());
      EXPECT_EQ(receive(transport, 0, 8, 10), full);
      EXPECT_EQ(receive(transport, 0, 8, 0), Bytes());
    }
  });
}

TEST_P(Conformance, ConnectsEveryRankWithEveryOther) {
  for (int size = 2; size <= 4; ++size) {
    run(size, [size](Transport& transport) {
      ASSERT_EQ(transport.size(), size);
      const int rank = transport.rank();
      std::vector<Bytes> incoming(static_cast<std::size_t>(size), Bytes(70'000));
      std::vector<Bytes> outgoing;
      std::vector<OperationPtr> operations;
      for (int peer = 0; peer < size; ++peer) outgoing.push_back(pattern(70'000, rank * 10 + peer));
      for (int peer = 0; peer < size; ++peer) {
        if (peer == rank) continue;
        const auto index = static_cast<std::size_t>(peer);
        operations.push_back(transport.irecv(peer, 4, incoming[index]));
        operations.push_back(transport.isend(peer, 4, outgoing[index]));
      }
      for (auto& operation : operations) transport.wait(*operation, soon());
      for (int peer = 0; peer < size; ++peer) {
        if (peer == rank) continue;
        EXPECT_EQ(incoming[static_cast<std::size_t>(peer)], pattern(70'000, peer * 10 + rank));
      }
    });
  }
}

TEST_P(Conformance, CountsThePayload) {
  run(2, [](Transport& transport) {
    exchange(transport, 1 - transport.rank(), 1, pattern(100, 1));
    exchange(transport, 1 - transport.rank(), 1, pattern(100'000, 1));
    EXPECT_EQ(transport.bytes_sent(), 100'100u);
    EXPECT_EQ(transport.bytes_received(), 100'100u);
  });
}

TEST_P(Conformance, RefusesAMessageOfAnotherSize) {
  const std::vector<std::pair<std::size_t, std::size_t>> sent_and_expected = {
      {100, 50}, {50, 100}, {0, 1}, {1, 0}, {100, 200'000}, {200'000, 100}, {200'000, 200'001}};
  for (const auto& [sent, expected] : sent_and_expected) {
    run(2, [sent = sent, expected = expected](Transport& transport) {
      if (transport.rank() == 0) {
        const Bytes bytes = pattern(sent, 1);
        const auto operation = transport.isend(1, 2, bytes);
        wait_until_gone(transport, 1);
      } else {
        EXPECT_EQ(failure_about(0, [&] { receive(transport, 0, 2, expected); }), ErrorCode::corrupt)
            << sent << " bytes sent, " << expected << " expected";
      }
    });
  }
}

TEST_P(Conformance, NamesAPeerThatClosed) {
  run(2, [](Transport& transport) {
    if (transport.rank() == 1) {
      send(transport, 0, 1, pattern(8, 1));
      transport.close();
      transport.close();
    } else {
      EXPECT_EQ(receive(transport, 1, 1, 8), pattern(8, 1));
      EXPECT_EQ(failed_receive(transport, 1, soon()), ErrorCode::peer_lost);
      expect_stays_failed(transport, 1);
    }
  });
}

TEST_P(Conformance, NamesAPeerThatClosedDuringALargeSend) {
  run(2, [](Transport& transport) {
    if (transport.rank() == 1) {
      receive(transport, 0, 1, 8);
    } else {
      send(transport, 1, 1, pattern(8, 1));
      EXPECT_EQ(failure_about(1, [&] { send(transport, 1, 2, Bytes(kLarge)); }),
                ErrorCode::peer_lost);
    }
  });
}

TEST_P(Conformance, ReceivesWhatWasSentBeforeTheClose) {
  run(2, [](Transport& transport) {
    const Bytes last_words = pattern(300'000, 9);
    if (transport.rank() == 1) {
      send(transport, 0, 1, last_words);
    } else {
      Bytes bytes(last_words.size());
      const auto incoming = transport.irecv(1, 1, bytes);
      transport.wait(*incoming, soon());
      EXPECT_EQ(bytes, last_words);
      wait_until_gone(transport, 1);
      transport.wait(*incoming, soon());  // What is complete stays complete.
    }
  });
}

TEST_P(Conformance, GoesOnWithoutAPeerThatClosed) {
  run(3, [](Transport& transport) {
    const int rank = transport.rank();
    if (rank == 2) {
      for (const int peer : {0, 1}) exchange(transport, peer, 1, pattern(8, 1));
      return;
    }
    exchange(transport, 2, 1, pattern(8, 1));
    EXPECT_EQ(failed_receive(transport, 2, soon()), ErrorCode::peer_lost);
    EXPECT_EQ(exchange(transport, 1 - rank, 2, pattern(100'000, rank)), pattern(100'000, 1 - rank));
  });
}

TEST_P(Conformance, GivesUpOnASilentPeerAtTheDeadline) {
  run(2, [](Transport& transport) {
    if (transport.rank() == 1) return wait_until_gone(transport, 0);
    EXPECT_EQ(failed_receive(transport, 1, Deadline::in_seconds(0.05)), ErrorCode::timeout);
    expect_stays_failed(transport, 1);
  });
}

TEST_P(Conformance, RefusesCallsAfterItsOwnCloseAndWrongRanks) {
  run(2, [](Transport& transport) {
    Bytes bytes(8);
    EXPECT_THROW(transport.isend(2, 1, bytes), Error);
    EXPECT_THROW(transport.irecv(-1, 1, bytes), Error);
    transport.close();
    EXPECT_THROW(transport.isend(1 - transport.rank(), 1, bytes), Error);
    EXPECT_THROW(transport.irecv(1 - transport.rank(), 1, bytes), Error);
  });
}

// Rank 0 waits for 2, which waits for 1, which waits for what 0 has begun to send.
TEST_P(Conformance, AMessageMovesOnWhileItsSenderWaitsForAnother) {
  run(3, [](Transport& transport) {
    const int before = (transport.rank() + 2) % 3;
    const int next = (transport.rank() + 1) % 3;
    const Bytes sent = pattern(kLarge, 1);
    Bytes received(kLarge);
    const auto incoming = transport.irecv(before, 1, received);
    OperationPtr outgoing;
    if (transport.rank() == 0) outgoing = transport.isend(next, 1, sent);
    transport.wait(*incoming, soon());
    if (!outgoing) outgoing = transport.isend(next, 1, sent);
    transport.wait(*outgoing, soon());
    EXPECT_EQ(received, sent);
  });
}

// The other one has not begun to receive the message, nor to send one.
TEST_P(Conformance, ADeadlineAndACloseCountWhileAMessageToAnotherIsUnfinished) {
  for (const bool closes : {false, true}) {
    run(3, [&](Transport& transport) {
      if (transport.rank() != 0) return wait_until_gone(transport, 0);
      const Bytes sent(kLarge);
      Bytes received(8);
      const auto outgoing = transport.isend(1, 1, sent);
      const auto incoming = transport.irecv(2, 1, received);
      std::jthread closer;
      if (closes) closer = std::jthread([&] { transport.close(); });
      try {
        transport.wait(*incoming, closes ? soon() : Deadline::in_seconds(0.05));
        ADD_FAILURE() << "received";
      } catch (const Error& error) {
        if (!closes) {
          EXPECT_EQ(error.code(), ErrorCode::timeout) << error.what();
          EXPECT_EQ(error.rank(), 2) << error.what();
        }
      }
      transport.close();  // Before the bytes go.
    });
  }
}

TEST_P(Conformance, ACloseEndsWhatAnotherThreadWaitsFor) {
  run(2, [](Transport& transport) {
    if (transport.rank() == 1) return wait_until_gone(transport, 0);
    Bytes bytes(kLarge);
    const auto incoming = transport.irecv(1, 1, bytes);
    const std::jthread closer([&] { transport.close(); });
    EXPECT_THROW(transport.wait(*incoming, soon()), Error);
  });
}

std::unique_ptr<Meeting> meet_inproc(int size) {
  return std::make_unique<InprocMeeting>(size);
}

std::unique_ptr<Meeting> meet_shm(int size) {
  return std::make_unique<ShmMeeting>(size, ShmOptions());
}

/// Messages are cut into many pieces, and ranks wait for each other all the time.
std::unique_ptr<Meeting> meet_shm_with_small_rings(int size) {
  return std::make_unique<ShmMeeting>(size, ShmOptions{.ring_bytes = 4096});
}

std::unique_ptr<Meeting> meet_gloo(int size) {
  return std::make_unique<GlooMeeting>(size);
}

/// Two ranks on each host, or every other one on the same.
std::unique_ptr<Meeting> meet_composed_pairs(int size) {
  return std::make_unique<ComposedMeeting>(size, [](int rank) { return rank / 2; });
}
std::unique_ptr<Meeting> meet_composed_in_turn(int size) {
  return std::make_unique<ComposedMeeting>(size, [](int rank) { return rank % 2; });
}

std::string group_name(const ::testing::TestParamInfo<TestGroup>& test) {
  return test.param.name;
}

// To test a transport, add a line.
INSTANTIATE_TEST_SUITE_P(
    Transports, Conformance,
    ::testing::Values(TestGroup{"InprocThreads", meet_inproc, false},
                      TestGroup{"ShmThreads", meet_shm, false},
                      TestGroup{"ShmSmallRingsThreads", meet_shm_with_small_rings, false},
                      TestGroup{"ShmProcesses", meet_shm, true},
                      TestGroup{"GlooThreads", meet_gloo, false},
                      TestGroup{"GlooProcesses", meet_gloo, true},
                      TestGroup{"ComposedPairsThreads", meet_composed_pairs, false},
                      TestGroup{"ComposedInTurnProcesses", meet_composed_in_turn, true}),
    group_name);

/// Ranks 0 and 1 survive rank 2, which is a process and gets a signal.
class Death : public ::testing::TestWithParam<TestGroup> {
 protected:
  static constexpr int kVictim = 2;

  void run(int signal, const RankBody& survivor) {
    const auto meeting = GetParam().meet(3);
    run_processes(*meeting, 3,
                  [&](Transport& transport) {
                    if (transport.rank() != kVictim) {
                      exchange(transport, kVictim, 1, pattern(8, 1));
                      return survivor(transport);
                    }
                    for (const int peer : {0, 1}) exchange(transport, peer, 1, pattern(8, 1));
                    ::raise(signal);
                  },
                  {kVictim});
  }
};

TEST_P(Death, AKilledPeerIsNamedAndTheOthersGoOn) {
  run(SIGKILL, [](Transport& transport) {
    EXPECT_EQ(failed_receive(transport, kVictim, soon()), ErrorCode::peer_lost);
    expect_stays_failed(transport, kVictim);
    const int rank = transport.rank();
    EXPECT_EQ(exchange(transport, 1 - rank, 7, pattern(100'000, rank)), pattern(100'000, 1 - rank));
  });
}

TEST_P(Death, AKilledPeerIsNamedWhileAMessageToAnotherIsUnfinished) {
  run(SIGKILL, [](Transport& transport) {
    const int other = 1 - transport.rank();
    const Bytes bytes = pattern(kLarge, 1);
    Bytes theirs(kLarge);
    const auto outgoing = transport.isend(other, 3, bytes);
    EXPECT_EQ(failed_receive(transport, kVictim, soon()), ErrorCode::peer_lost);
    transport.wait(*transport.irecv(other, 3, theirs), soon());
    transport.wait(*outgoing, soon());
    EXPECT_EQ(theirs, bytes);
  });
}

TEST_P(Death, APeerKilledDuringALargeSendIsNamed) {
  run(SIGKILL, [](Transport& transport) {
    EXPECT_EQ(failure_about(kVictim, [&] { send(transport, kVictim, 2, Bytes(kLarge)); }),
              ErrorCode::peer_lost);
    expect_stays_failed(transport, kVictim);
  });
}

TEST_P(Death, AFrozenPeerIsNamedAtTheDeadline) {
  run(SIGSTOP, [](Transport& transport) {
    EXPECT_EQ(failed_receive(transport, kVictim, Deadline::in_seconds(0.3)), ErrorCode::timeout);
    expect_stays_failed(transport, kVictim);
  });
}

TEST_P(Death, APeerFrozenDuringALargeSendIsNamedAtTheDeadline) {
  run(SIGSTOP, [](Transport& transport) {
    const Bytes bytes(kLarge);
    EXPECT_EQ(failure_about(kVictim,
                            [&] {
                              transport.wait(*transport.isend(kVictim, 2, bytes),
                                             Deadline::in_seconds(0.3));
                            }),
              ErrorCode::timeout);
    expect_stays_failed(transport, kVictim);
  });
}

/// Kills rank 1 at various points of a large message between it and rank 0, whose wait must not
/// last until its deadline.
class DeathWithinAMessage : public ::testing::TestWithParam<TestGroup> {
 protected:
  using Move = std::function<OperationPtr(Transport& transport, Bytes& bytes)>;

  /// What the survivor and the victim do with the message.
  void run(const Move& survivor, const Move& victim) {
    for (int round = 0; round < 10; round += 3) {
      const auto meeting = GetParam().meet(2);
      run_processes(*meeting, 2,
                    [&](Transport& transport) {
                      Bytes bytes = pattern(kLarge, 1);  // Before: it takes longer than to send it.
                      try {  // The message may be through before the death, or not begun.
                        exchange(transport, 1 - transport.rank(), 1, pattern(8, 1));
                        if (transport.rank() == 1) die_in(round, transport, bytes, victim);
                        transport.wait(*survivor(transport, bytes), soon());
                      } catch (const Error& error) {
                        EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
                        EXPECT_EQ(error.rank(), 1) << error.what();
                      }
                      wait_until_gone(transport, 1);
                    },
                    {1});
    }
  }

 private:
  static void die_in(int milliseconds, Transport& transport, Bytes& bytes, const Move& move) {
    const std::jthread message([&] { transport.wait(*move(transport, bytes), soon()); });
    const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
    while (Clock::now() < end) {
    }
    ::raise(SIGKILL);
  }
};

OperationPtr start_send(Transport& transport, Bytes& bytes) {
  return transport.isend(1 - transport.rank(), 2, bytes);
}

OperationPtr start_receive(Transport& transport, Bytes& bytes) {
  return transport.irecv(1 - transport.rank(), 2, bytes);
}

TEST_P(DeathWithinAMessage, AReceiverIsNamed) {
  run(start_send, start_receive);
}

TEST_P(DeathWithinAMessage, ASenderIsNamed) {
  run(start_receive, start_send);
}

INSTANTIATE_TEST_SUITE_P(
    Transports, DeathWithinAMessage,
    ::testing::Values(TestGroup{"Shm", meet_shm, true}, TestGroup{"Gloo", meet_gloo, true},
                      TestGroup{"ComposedPairs", meet_composed_pairs, true},
                      TestGroup{"ComposedInTurn", meet_composed_in_turn, true}),
    group_name);

INSTANTIATE_TEST_SUITE_P(
    Transports, Death,
    ::testing::Values(TestGroup{"Shm", meet_shm, true}, TestGroup{"Gloo", meet_gloo, true},
                      TestGroup{"ComposedPairs", meet_composed_pairs, true},
                      TestGroup{"ComposedInTurn", meet_composed_in_turn, true}),
    group_name);

}  // namespace
}  // namespace cohort
