// What shared memory has beyond the conformance suite: messages kept aside, sends that are given
// up, a rank that lies, and how much memory a group takes. Mostly one thread that plays all ranks in
// turn.

#include "transport/shm/shm.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "os/memory.h"
#include "transport/ranks_test_support.h"
#include "transport/shm/rings.h"

namespace cohort::transport {
namespace {

using Bytes = std::vector<std::byte>;

/// Ranks that one thread can use in turn, because nobody has to wait while messages fit the ring.
class Shm : public ::testing::Test {
 protected:
  static constexpr std::size_t kRingBytes = 1024;

  /// Memory of which nothing is used.
  void SetUp() override { region_ = os::SharedMemory::create(shm_bytes_needed(2, options_)); }
  std::span<std::byte> bytes() const { return {region_.data(), region_.size()}; }

  std::unique_ptr<Transport> connect(int rank) {
    return make_shm_transport(rank, 2, {region_.data(), region_.size()}, os::PeerWatch(), options_);
  }

 private:
  ShmOptions options_{.ring_bytes = kRingBytes};
  os::SharedMemory region_;
};

TEST_F(Shm, SmallSendsAreCompleteAtOnce) {
  const auto zero = connect(0);
  const auto one = connect(1);
  const Bytes sent(100, std::byte{5});
  zero->wait(*zero->isend(1, 1, sent), soon());
  Bytes got(100);
  one->wait(*one->irecv(0, 1, got), soon());
  EXPECT_EQ(got, sent);
}

TEST_F(Shm, SendsThatAreWaitedForBeforeAnyReceiveDoNotBlockEachOther) {
  constexpr std::size_t kSize = 100'000;  // A hundred rings full.
  const auto exchange = [](Transport& transport) {
    const int peer = 1 - transport.rank();
    const Bytes mine(kSize, std::byte(transport.rank()));
    transport.wait(*transport.isend(peer, 1, mine), soon());
    Bytes theirs(kSize);
    transport.wait(*transport.irecv(peer, 1, theirs), soon());
    EXPECT_EQ(theirs, Bytes(kSize, std::byte(peer)));
  };
  const auto zero = connect(0);
  const auto one = connect(1);
  std::jthread other([&] { exchange(*one); });
  exchange(*zero);
}

TEST_F(Shm, AMessageIsFoundBehindOneThatIsStillArriving) {
  const auto zero = connect(0);
  const auto one = connect(1);
  const Bytes large(3000, std::byte{1});
  const Bytes small(10, std::byte{2});
  const auto first = zero->isend(1, 1, large);
  const auto second = zero->isend(1, 2, small);
  Bytes got_small(10), got_large(3000);
  const auto wanted = one->irecv(0, 2, got_small);   // The large one is now kept aside.
  const auto claimed = one->irecv(0, 1, got_large);  // And asked for before it is complete.
  std::jthread sender([&] {
    zero->wait(*first, soon());
    zero->wait(*second, soon());
  });
  one->wait(*wanted, soon());
  one->wait(*claimed, soon());
  EXPECT_EQ(got_small, small);
  EXPECT_EQ(got_large, large);
}

TEST_F(Shm, ASendThatWasNeverBegunCanBeAbandoned) {
  const auto zero = connect(0);
  const auto one = connect(1);
  const Bytes filler(1000, std::byte{1});
  zero->wait(*zero->isend(1, 1, filler), soon());  // Now the ring has no room for a header.
  { const auto abandoned = zero->isend(1, 2, Bytes(500)); }
  const Bytes last(20, std::byte{3});
  const auto third = zero->isend(1, 3, last);
  Bytes got(20), got_filler(1000);
  const auto incoming = one->irecv(0, 1, got_filler);
  one->wait(*incoming, soon());
  zero->wait(*third, soon());
  one->wait(*one->irecv(0, 3, got), soon());
  EXPECT_EQ(got, last);
}

TEST_F(Shm, AHalfSentMessageThatIsAbandonedEndsTheConnection) {
  const auto zero = connect(0);
  { const auto abandoned = zero->isend(1, 1, Bytes(5000)); }
  const Bytes next(8);
  EXPECT_THROW(
      {
        const auto operation = zero->isend(1, 2, next);
        zero->wait(*operation, soon());
      },
      Error);
}

/// Rank 1 of two, which writes into the memory that it shares with rank 0 whatever it likes.
class LyingRank : public Shm {
 protected:
  /// As the header of peer_link.h, and bytes behind it.
  void write_message(Tag tag, std::uint64_t size, std::size_t bytes_that_come = 0) {
    const std::uint64_t header[] = {tag, size};
    RingWriter writer(from_liar());
    writer.write(std::as_bytes(std::span(header)));
    writer.write(Bytes(bytes_that_come));
    writer.publish();
  }

  RingMemory from_liar() const { return layout_.ring(bytes().data(), 1, 0); }
  RingMemory to_liar() const { return layout_.ring(bytes().data(), 0, 1); }

  /// What rank 0 gets to hear that waits for 8 bytes with tag 1.
  static Error error_of_receive(Transport& zero, Deadline deadline = soon()) {
    Bytes got(8);
    try {
      zero.wait(*zero.irecv(1, 1, got), deadline);
    } catch (const Error& error) {
      EXPECT_EQ(error.rank(), 1);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("ank 1"));
      return error;
    }
    ADD_FAILURE() << "it has got something";
    return Error(ErrorCode::invalid, "");
  }

 private:
  RingLayout layout_{2, kRingBytes};
};

TEST_F(LyingRank, CannotMakeAReceiverTakeMoreThanItAskedFor) {
  const auto zero = connect(0);
  write_message(1, 800, 800);
  EXPECT_EQ(error_of_receive(*zero).code(), ErrorCode::corrupt);
}

TEST_F(LyingRank, CannotAnnounceWhatNobodyHasMemoryFor) {
  for (const std::uint64_t size :
       {std::numeric_limits<std::uint64_t>::max(), (std::uint64_t{1} << 47) + 1}) {
    SetUp();
    const auto zero = connect(0);
    write_message(7, size);
    EXPECT_EQ(error_of_receive(*zero).code(), ErrorCode::corrupt) << size;
  }
}

// Of what it announces only some bytes ever come; memory is taken for those.
TEST_F(LyingRank, WhatItOnlyAnnouncesTakesNoMemory) {
  const auto zero = connect(0);
  write_message(7, std::uint64_t{1} << 46, 500);
  EXPECT_EQ(error_of_receive(*zero, Deadline::in_seconds(0.02)).code(), ErrorCode::timeout);
}

TEST_F(LyingRank, CannotMakeAReceiverReadPastItsRing) {
  for (const std::uint64_t written : {std::uint64_t{kRingBytes} + 1, std::uint64_t{1} << 40,
                                      std::numeric_limits<std::uint64_t>::max()}) {
    SetUp();
    const auto zero = connect(0);
    write_message(7, 100 * kRingBytes, 100);
    from_liar().counters->written = written;
    EXPECT_EQ(error_of_receive(*zero).code(), ErrorCode::corrupt) << written;
  }
}

TEST_F(LyingRank, CannotMakeASenderWritePastItsRing) {
  const Bytes large(100 * kRingBytes, std::byte{1});
  for (const std::uint64_t read : {std::uint64_t{kRingBytes} + 1, std::uint64_t{1} << 40,
                                   std::numeric_limits<std::uint64_t>::max()}) {
    SetUp();
    const auto zero = connect(0);
    const auto sending = zero->isend(1, 1, large);
    to_liar().counters->read = read;
    try {
      zero->wait(*sending, soon());
      ADD_FAILURE() << "all was sent";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << read;
      EXPECT_EQ(error.rank(), 1);
    }
  }
}

// Where the bytes of a position stand is what the writer says, and always in the ring.
TEST_F(LyingRank, CannotMoveTheRing) {
  const auto zero = connect(0);
  write_message(1, 8, 8);
  from_liar().counters->start = std::uint64_t{1} << 40 | 13;
  Bytes got(8);
  EXPECT_THROW(zero->wait(*zero->irecv(1, 1, got), Deadline::in_seconds(0.02)), Error);
}

/// A group of many ranks, all in this thread, in a region that takes pages on use.
class ManyRanks {
 public:
  explicit ManyRanks(int ranks)
      : region_(
            os::SharedMemory::create(shm_bytes_needed(ranks), os::SharedMemory::Pages::on_use)) {
    for (int rank = 0; rank < ranks; ++rank) {
      ranks_.push_back(
          make_shm_transport(rank, ranks, {region_.data(), region_.size()}, os::PeerWatch()));
    }
  }

  void send(int from, int to, const Bytes& bytes) {
    const auto size = static_cast<int>(ranks_.size());
    Transport& receiver = *ranks_[static_cast<std::size_t>(to % size)];
    Transport& sender = *ranks_[static_cast<std::size_t>(from)];
    Bytes got(bytes.size());
    const auto incoming = receiver.irecv(from, 1, got);
    sender.wait(*sender.isend(to % size, 1, bytes), soon());
    receiver.wait(*incoming, soon());
    ASSERT_EQ(got, bytes);
  }

  std::size_t bytes_in_use() const { return region_.bytes_in_use(); }

 private:
  os::SharedMemory region_;
  std::vector<std::unique_ptr<Transport>> ranks_;
};

TEST(ShmMemory, FollowsWhoTalksToWhomAndNotHowOften) {
  constexpr int kRanks = 64;
  ManyRanks group(kRanks);
  const Bytes few(100, std::byte{7});
  for (int from = 0; from < kRanks; ++from) {
    for (int distance = 1; distance < kRanks; distance *= 2) {
      for (int time = 0; time < 100; ++time) group.send(from, from + distance, few);
    }
  }
  EXPECT_LE(group.bytes_in_use(), std::size_t{4} << 20) << "a page for each of the 384 that talk";
}

TEST(ShmMemory, IsBoundedWhereEverybodySendsMuchToEverybody) {
  constexpr int kRanks = 64;
  ManyRanks group(kRanks);
  const Bytes half_a_ring(8 << 10, std::byte{9});
  for (int from = 0; from < kRanks; ++from) {
    for (int distance = 1; distance < kRanks; ++distance) {
      group.send(from, from + distance, half_a_ring);
    }
  }
  EXPECT_LE(group.bytes_in_use(), std::size_t{100} << 20);
  EXPECT_LE(shm_bytes_needed(256), std::size_t{256} << 20) << "if all of it were used";
}

TEST(ShmMemory, NeighboursOfALargeGroupKeepTheirCapacity) {
  ManyRanks group(64);
  const Bytes large(200 << 10, std::byte{5});
  for (int rank = 0; rank < 64; ++rank) group.send(rank, rank + 1, large);  // Fits, or would wait.
}

TEST_F(Shm, RefusesARegionThatIsTooSmall) {
  Bytes region(shm_bytes_needed(2) - 1);
  EXPECT_THROW(make_shm_transport(0, 2, region, os::PeerWatch()), Error);
}

}  // namespace
}  // namespace cohort::transport
