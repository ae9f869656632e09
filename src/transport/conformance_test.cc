// What every transport promises (transport.h), proved on each of them by the same tests: order,
// tags, sizes, counts, closes, deadlines, and that messages move on while their ranks wait for
// others. Ranks are threads or forked processes; small rings cut messages into many pieces.

#include "transport/conformance_test_support.h"

namespace cohort::transport {
namespace {

using namespace conformance;

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
    EXPECT_EQ(transport.traffic().sent, 100'100u);
    EXPECT_EQ(transport.traffic().received, 100'100u);
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

}  // namespace
}  // namespace cohort::transport
