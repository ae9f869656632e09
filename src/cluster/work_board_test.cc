// Proves that every piece is handed out and done once, whatever is lost and in whatever order the
// workers ask, and that nobody gets further ahead than the bound.

#include "cluster/work_board.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/random.h"

namespace cohort::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Answer = WorkBoard::Answer;

TEST(WorkBoard, HandsOutThePartsInOrderEachOnce) {
  WorkBoard board({.workers = 2, .left = {.next = 15, .parts = 3}, .end_step = 7});
  std::vector<Claim> given;
  Claim claim;
  for (int turn = 0; board.claim(turn % 2, claim) == Answer::claimed; ++turn) {
    given.push_back(claim);
  }
  EXPECT_THAT(given, ElementsAre(Claim{5, 0}, Claim{5, 1}, Claim{5, 2}, Claim{6, 0}, Claim{6, 1},
                                 Claim{6, 2}));
}

TEST(WorkBoard, HoldsTheFastBackAtTheBound) {
  WorkBoard board({.workers = 2, .end_step = 10, .bound = 2});
  Claim claim;
  ASSERT_EQ(board.claim(0, claim), Answer::claimed);  // Step 0, which worker 0 stays on.
  ASSERT_EQ(board.claim(1, claim), Answer::claimed);
  ASSERT_EQ(board.claim(1, claim), Answer::claimed);
  EXPECT_EQ(claim.step, 2);
  EXPECT_EQ(board.claim(1, claim), Answer::wait);
  EXPECT_EQ(board.claim(1, claim), Answer::wait);
  ASSERT_EQ(board.claim(0, claim), Answer::claimed);
  EXPECT_EQ(claim.step, 3);
  EXPECT_EQ(board.claim(1, claim), Answer::claimed);
}

TEST(WorkBoard, DoesNotWaitForWhoRests) {
  WorkBoard board({.workers = 2, .end_step = 10, .bound = 0});
  Claim claim;
  ASSERT_EQ(board.claim(0, claim), Answer::claimed);
  ASSERT_EQ(board.claim(1, claim), Answer::wait);
  board.rest(0);
  EXPECT_EQ(board.claim(1, claim), Answer::claimed);
  EXPECT_EQ(claim.step, 1);
}

TEST(WorkBoard, HandsOutFirstWhatTheGoneHaveNotDone) {
  WorkBoard board({.workers = 3, .left = {.parts = 4}, .end_step = 2});
  Claim claim;
  for (int piece = 0; piece < 2; ++piece) ASSERT_EQ(board.claim(2, claim), Answer::claimed);
  board.done(2);
  for (const int worker : {2, 1, 2}) ASSERT_EQ(board.claim(worker, claim), Answer::claimed);
  EXPECT_EQ(board.left().next, 5);
  EXPECT_THAT(board.left().again, ElementsAre(Claim{0, 2}, Claim{0, 3}, Claim{1, 0}));
  board.gone(2);
  EXPECT_THAT(board.left().again, ElementsAre(Claim{0, 2}, Claim{0, 3}, Claim{1, 0}));
  for (const Claim expected : {Claim{0, 2}, Claim{1, 0}, Claim{1, 1}}) {
    ASSERT_EQ(board.claim(0, claim), Answer::claimed);
    EXPECT_EQ(claim, expected);
  }
  board.done(0);
  board.done(1);
  EXPECT_THAT(board.left().again, IsEmpty());
}

TEST(WorkBoard, SaysWhoHasWhatUntilTheNextBoardHandsOutWork) {
  WorkBoard first({.workers = 2, .left = {.parts = 2}, .end_step = 4});
  Claim claim;
  for (const int worker : {1, 0, 1}) ASSERT_EQ(first.claim(worker, claim), Answer::claimed);
  WorkBoard second({.workers = 1, .left = first.left(), .end_step = 4});
  const auto takers = [](const WorkBoard& board) {
    std::vector<int> all;
    for (const Claim& piece : board.left().again) all.push_back(piece.taken_by);
    return all;
  };
  EXPECT_THAT(takers(second), ElementsAre(1, 0, 1));
  // The last was handed out after what this board was made of was saved.
  const std::vector<Claim> done = {{.step = 0, .part = 0}, {.step = 2, .part = 1}};
  EXPECT_TRUE(second.has(done[1]));
  EXPECT_FALSE(second.has({.step = 2, .part = 2}));
  EXPECT_FALSE(second.has({.step = 4, .part = 0}));
  second.done_before(done);
  EXPECT_THAT(second.left().again, ElementsAre(Claim{0, 1}, Claim{1, 0}, Claim{1, 1}, Claim{2, 0}));
  EXPECT_EQ(second.left().next, 6);
  EXPECT_THAT(takers(second), ElementsAre(0, 1, -1, -1));
  ASSERT_EQ(second.claim(0, claim), Answer::claimed);
  EXPECT_EQ(claim, (Claim{0, 1}));
  EXPECT_THAT(takers(second), ElementsAre(0, -1, -1, -1));
}

TEST(WorkBoard, GoesOnWithWhatWasLeft) {
  WorkLeft left{.next = 6, .parts = 2, .again = {{2, 1}, {0, 0}}};
  WorkBoard board({.workers = 1, .left = left, .end_step = 4});
  std::vector<Claim> given;
  for (Claim claim; board.claim(0, claim) == Answer::claimed;) given.push_back(claim);
  EXPECT_THAT(given, ElementsAre(Claim{0, 0}, Claim{2, 1}, Claim{3, 0}, Claim{3, 1}));
}

TEST(WorkBoard, HandsOutAMillionPiecesThatNobodyHasDone) {
  constexpr std::int64_t kPieces = 1 << 20;
  constexpr int kWorkers = 4;
  WorkBoard board({.workers = kWorkers, .left = {.parts = kWorkers}, .end_step = kPieces});
  Claim claim;
  for (int turn = 0; turn < kPieces; ++turn) {
    ASSERT_EQ(board.claim(turn % kWorkers, claim), Answer::claimed);
  }
  const WorkLeft all = board.left();
  EXPECT_EQ(all.again.size(), std::size_t{kPieces});
  EXPECT_EQ(shortest(all).next, 0) << "nothing is done";
  EXPECT_THAT(shortest(all).again, IsEmpty());
  board.gone(0);  // A quarter of them is handed out again, in order.
  for (std::int64_t step = 0; step < kPieces / kWorkers; ++step) {
    ASSERT_EQ(board.claim(1, claim), Answer::claimed);
    ASSERT_EQ(claim, (Claim{step, 0}));
  }
  board.done(1);
  const WorkLeft left = shortest(board.left());
  EXPECT_EQ(left.next, kPieces - 2) << "what workers 2 and 3 took last stands just before it";
  EXPECT_EQ(left.again.size(), std::size_t{kPieces / 2 - 2});
  EXPECT_EQ(left.again.front(), (Claim{0, 2}));
}

TEST(WorkBoard, EndsOnlyWhenNobodyWorksAnyMore) {
  WorkBoard board({.workers = 3, .end_step = 2});
  Claim claim;
  ASSERT_EQ(board.claim(0, claim), Answer::claimed);
  ASSERT_EQ(board.claim(1, claim), Answer::claimed);
  EXPECT_EQ(board.claim(2, claim), Answer::wait);
  board.gone(1);
  ASSERT_EQ(board.claim(2, claim), Answer::claimed);
  EXPECT_EQ(claim, (Claim{1, 0}));
  EXPECT_EQ(board.claim(0, claim), Answer::wait);
  board.rest(2);  // It has pushed, and waits perhaps for worker 0 to finish.
  EXPECT_EQ(board.claim(0, claim), Answer::end);
  EXPECT_EQ(board.claim(2, claim), Answer::end);
}

TEST(WorkBoard, EndsForAllWhenStopped) {
  WorkBoard board({.workers = 2, .end_step = 10});
  Claim claim;
  ASSERT_EQ(board.claim(0, claim), Answer::claimed);
  board.stop();
  EXPECT_EQ(board.claim(0, claim), Answer::end);
  EXPECT_EQ(board.claim(1, claim), Answer::end);
}

TEST(WorkBoard, RefusesOptionsAndWorkersThatMakeNoSense) {
  EXPECT_THROW(WorkBoard({.workers = 0}), Error);
  EXPECT_THROW(WorkBoard({.left = {.parts = 0}}), Error);
  EXPECT_THROW(WorkBoard({.left = {.next = -1}}), Error);
  EXPECT_THROW(WorkBoard({.left = {.next = 2, .parts = 2, .again = {{1, 0}}}}), Error);
  EXPECT_THROW(WorkBoard({.left = {.next = 2, .parts = 2, .again = {{0, 2}}}}), Error);
  EXPECT_THROW(WorkBoard({.end_step = -1}), Error);
  EXPECT_THROW(WorkBoard({.bound = -1}), Error);
  WorkBoard board({.workers = 2});
  Claim claim;
  EXPECT_THROW(board.claim(2, claim), Error);
  EXPECT_THROW(board.claim(-1, claim), Error);
  EXPECT_THROW(board.done(2), Error);
}

/// What every worker is busy with, by an own account.
class Busy {
 public:
  explicit Busy(int workers) : steps_(static_cast<std::size_t>(workers)) {}

  std::optional<std::int64_t>& of(int worker) { return steps_[static_cast<std::size_t>(worker)]; }

  std::optional<std::int64_t> oldest() const {
    std::optional<std::int64_t> oldest;
    for (const auto& step : steps_) {
      if (step) oldest = std::min(*step, oldest.value_or(*step));
    }
    return oldest;
  }

 private:
  std::vector<std::optional<std::int64_t>> steps_;
};

TEST(WorkBoard, KeepsTheBoundAndLosesNothingInEveryOrder) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const int workers = 1 + static_cast<int>(random.below(5));
    const int parts = 1 + static_cast<int>(random.below(4));
    const auto bound = static_cast<std::int64_t>(random.below(4));
    const std::int64_t end = 12;
    WorkBoard board(
        {.workers = workers, .left = {.parts = parts}, .end_step = end, .bound = bound});
    Busy busy(workers);
    std::set<Claim> given;
    std::set<Claim> done;
    std::vector<Claim> mine[5];
    std::vector<int> present;
    for (int worker = 0; worker < workers; ++worker) present.push_back(worker);
    int waits_in_a_row = 0;
    while (!present.empty()) {
      const std::size_t turn = random.below(present.size());
      const int worker = present[turn];
      auto& taken = mine[worker];
      busy.of(worker).reset();
      if (present.size() > 1 && random.below(40) == 0) {
        board.gone(worker);
        for (const Claim& claim : taken) given.erase(claim);
        present.erase(present.begin() + static_cast<std::ptrdiff_t>(turn));
        continue;
      }
      if (random.below(3) == 0) {
        board.done(worker);
        done.insert(taken.begin(), taken.end());
        taken.clear();
      }
      const auto oldest = busy.oldest();
      Claim claim;
      const Answer answer = board.claim(worker, claim);
      if (answer == Answer::end) {
        board.done(worker);
        done.insert(taken.begin(), taken.end());
        present.erase(present.begin() + static_cast<std::ptrdiff_t>(turn));
      } else if (answer == Answer::wait) {
        ASSERT_TRUE(oldest) << "a worker waits for nobody, seed " << seed;
        ASSERT_LT(++waits_in_a_row, 1000) << "nobody gets on, seed " << seed;
      } else {
        waits_in_a_row = 0;
        ASSERT_TRUE(given.insert(claim).second) << "given twice, seed " << seed;
        taken.push_back(claim);
        ASSERT_LE(claim.step - oldest.value_or(claim.step), bound) << "seed " << seed;
        busy.of(worker) = claim.step;
      }
    }
    EXPECT_EQ(done.size(), static_cast<std::size_t>(end * parts)) << "seed " << seed;
    EXPECT_THAT(board.left().again, IsEmpty()) << "seed " << seed;
  }
}

TEST(WorkBoard, NobodyWaitsForAWorkerFourTimesSlower) {
  constexpr int kWorkers = 4;
  WorkBoard board({.workers = kWorkers, .left = {.parts = kWorkers}, .end_step = 200, .bound = 8});
  std::vector<int> free_at(kWorkers, 0);  // By a clock that only this test has.
  std::vector<int> claims(kWorkers, 0);
  while (true) {
    const auto next = std::ranges::min_element(free_at);
    const auto worker = static_cast<std::size_t>(next - free_at.begin());
    Claim claim;
    const Answer answer = board.claim(static_cast<int>(worker), claim);
    if (board.left().next == 200 * kWorkers && answer == Answer::wait) break;  // All is given out.
    ASSERT_EQ(answer, Answer::claimed) << "worker " << worker << " waits at " << *next;
    ++claims[worker];
    *next += worker == 0 ? 4 : 1;
  }
  EXPECT_NEAR(claims[0] * 4, claims[1], 4) << "the slow one takes a quarter of a fast one's parts";
}

}  // namespace
}  // namespace cohort::cluster
