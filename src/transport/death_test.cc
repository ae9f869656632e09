// What a transport does when a peer dies (SIGKILL) or freezes (SIGSTOP), before, between and within
// messages: whoever needs it gets an Error that names it, and the others go on. Ranks are
// processes; the victim signals itself at a known point.

#include "transport/conformance_test_support.h"

namespace cohort::transport {
namespace {

using namespace conformance;

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
}  // namespace cohort::transport
