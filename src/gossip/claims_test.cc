// The counter of claims: order, what is left while others go on (threads), and that of workers
// which are killed at any instruction (processes) no piece is lost or done twice unnoticed.

#include "gossip/claims.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "base/random.h"
#include "os/memory.h"

namespace cohort::gossip {
namespace {

TEST(ClaimCounter, HandsOutWhatIsToDoAgainFirst) {
  const ClaimRange range{.work = {.next = 5, .parts = 3, .again = {{0, 2}}}, .end_step = 3};
  const os::PrivateMemory memory(ClaimCounter::bytes_needed(2));
  ClaimCounter counter(memory.bytes(), 2, range);
  EXPECT_EQ(range.size(), 5);
  std::vector<std::int64_t> numbers;
  while (const auto claim = counter.next(0)) {
    numbers.push_back(claim->step * 3 + claim->part);
    counter.done(0, *claim);
  }
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{2, 5, 6, 7, 8}));
  EXPECT_EQ(counter.left().next, 9);
  EXPECT_TRUE(counter.left().again.empty());
  EXPECT_EQ(whole_steps(counter.left()), 3);
  EXPECT_EQ(whole_steps(range.work), 0);
  for (std::int64_t index = 0; index < range.size(); ++index) {
    EXPECT_EQ(range.pieces_before(range.at(index)), 4 + index) << "four were done before";
  }
}

TEST(ClaimCounter, AWordAboutAnEarlierPieceSaysNothingAboutThisOne) {
  const os::PrivateMemory memory(ClaimCounter::bytes_needed(1));
  ClaimCounter counter(memory.bytes(), 1, {.work = {}, .end_step = 9});
  const auto first = counter.next(0);
  const auto second = counter.next(0);
  counter.done(0, *first);
  EXPECT_EQ(counter.left().again.size(), 1U);
  counter.done(0, *second);
  EXPECT_EQ(counter.left().again.size(), 0U);
}

// Its memory is everybody's, and may say that workers took pieces whom, and which, there are not.
TEST(ClaimCounter, WhatIsWrittenThereLeadsNowhereElse) {
  constexpr int kWorld = 2;
  os::PrivateMemory memory(ClaimCounter::bytes_needed(kWorld) + 64);
  const auto own = memory.bytes().first(ClaimCounter::bytes_needed(kWorld));
  auto* const words = reinterpret_cast<std::uint64_t*>(own.data());
  const ClaimRange range{.work = {.next = 4, .parts = 2, .again = {{.step = 0, .part = 1}}},
                         .end_step = 4};
  ClaimCounter counter(own, kWorld, range);
  words[0] = (1 << 16) | (kWorld + 1);  // One piece, taken by who comes after the last.
  counter.next(0);
  EXPECT_EQ(std::to_integer<int>(memory.bytes()[own.size()]), 0);
  for (const std::uint64_t state : {std::uint64_t{1}, ~std::uint64_t{0} - 1}) {
    words[8] = state;  // What worker 0 took last.
    counter.done(0, {.step = 0, .part = 1});
    EXPECT_EQ(words[8], state);
  }
  words[0] = ~std::uint64_t{0} << 16;
  EXPECT_EQ(counter.left().next, 8) << "no more than there are";
}

TEST(ClaimCounter, ARangeBehindTheEndIsEmpty) {
  EXPECT_EQ((ClaimRange{.work = {.next = 12, .parts = 2}, .end_step = 3}).size(), 0);
}

TEST(ClaimCounter, WhatSeveralWorkersKnowIsPutTogether) {
  const auto numbers = [](const std::vector<cluster::WorkLeft>& views) {
    const cluster::WorkLeft merged = merged_work(views);
    std::vector<std::int64_t> all = {merged.next};
    for (const cluster::Claim& claim : merged.again) all.push_back(claim.step * 2 + claim.part);
    return all;
  };
  const cluster::WorkLeft old{.next = 4, .parts = 2, .again = {{1, 0}, {1, 1}}};
  const cluster::WorkLeft newest{.next = 9, .parts = 2, .again = {{1, 0}, {1, 1}, {3, 1}, {4, 0}}};
  const cluster::WorkLeft has_done_its_own{.next = 8, .parts = 2, .again = {{1, 0}, {1, 1}}};
  EXPECT_EQ(numbers({old}), (std::vector<std::int64_t>{4, 2, 3}));
  EXPECT_EQ(numbers({old, newest}), (std::vector<std::int64_t>{9, 2, 3, 7, 8}));
  // Piece 7 was handed out and done; piece 8 was not handed out yet when that worker asked last.
  EXPECT_EQ(numbers({has_done_its_own, old, newest}), (std::vector<std::int64_t>{9, 2, 3, 8}));
}

// While workers take and finish, what is left is always what nobody has done, and nothing twice.
TEST(ClaimCounter, KnowsWhatIsLeftWhileOthersGoOn) {
  constexpr int kWorkers = 3;
  constexpr std::int64_t kPieces = 20'000;
  const ClaimRange range{.work = {.parts = 2}, .end_step = kPieces / 2};
  const os::PrivateMemory memory(ClaimCounter::bytes_needed(kWorkers));
  ClaimCounter counter(memory.bytes(), kWorkers, range);
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      while (const auto claim = counter.next(worker)) counter.done(worker, *claim);
    });
  }
  for (std::int64_t before = 0; before < kPieces;) {
    const cluster::WorkLeft left = counter.left();
    EXPECT_GE(left.next, before);
    before = left.next;
    ASSERT_LE(left.again.size(), static_cast<std::size_t>(kWorkers));
    std::int64_t last = -1;
    for (const cluster::Claim& claim : left.again) {
      const std::int64_t number = claim.step * 2 + claim.part;
      ASSERT_GT(number, last);
      ASSERT_LT(number, left.next);
      last = number;
    }
  }
}

/// Works without end. What it has done is in `done` before the counter knows.
[[noreturn]] void work(ClaimCounter& counter, int worker, std::atomic<int>* done) {
  while (const auto claim = counter.next(worker)) {
    ++done[claim->step];
    counter.done(worker, *claim);
  }
  ::_exit(0);
}

TEST(ClaimCounter, WorkersKilledAnywhereLoseNoPiece) {
  constexpr int kWorkers = 3;
  constexpr std::int64_t kPieces = 100'000;
  Random random(3);
  int killed_within_a_piece = 0;
  for (int round = 0; round < 30; ++round) {
    const auto memory = os::SharedMemory::create(ClaimCounter::bytes_needed(kWorkers));
    const auto results = os::SharedMemory::create(kPieces * sizeof(std::atomic<int>));
    auto* const done = reinterpret_cast<std::atomic<int>*>(results.data());
    const ClaimRange range{.work = {}, .end_step = kPieces};
    ClaimCounter counter({memory.data(), memory.size()}, kWorkers, range);
    std::vector<pid_t> children;
    for (int worker = 0; worker < kWorkers; ++worker) {
      children.push_back(::fork());
      if (children.back() == 0) work(counter, worker, done);
    }
    const auto some = static_cast<std::int64_t>(random.below(kPieces / 2));
    while (counter.left().next < some) {
    }
    for (const pid_t child : children) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    const cluster::WorkLeft left = counter.left();
    std::map<std::int64_t, int> again;
    for (const cluster::Claim& claim : left.again) ++again[claim.step];
    killed_within_a_piece += static_cast<int>(again.size());
    for (std::int64_t piece = 0; piece < kPieces; ++piece) {
      const bool is_left = piece >= left.next || again.contains(piece);
      ASSERT_LE(done[piece], 1);
      if (!is_left) {
        ASSERT_EQ(done[piece], 1) << "piece " << piece << " is lost";
      }
      if (piece >= left.next) {
        ASSERT_EQ(done[piece], 0);
      }
    }
    for (const auto& [piece, times] : again) ASSERT_EQ(times, 1) << "piece " << piece;
  }
  EXPECT_GT(killed_within_a_piece, 0);
}

}  // namespace
}  // namespace cohort::gossip
