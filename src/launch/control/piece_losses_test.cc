// A queue in memory that two share, read and written by one thread here; and the lines that become
// of pieces, in whatever order they come.

#include "launch/control/piece_losses.h"

#include <gtest/gtest.h>

#include <vector>

namespace cohort::launch {
namespace {

/// Of a step of 8 rows in 2 pieces.
PieceLoss piece(std::int64_t step, std::int64_t part, double loss, std::int64_t rows = 4) {
  return {.step = step,
          .part = part,
          .rows = rows,
          .global_rows = 8,
          .loss = loss,
          .gradient_norm = 1,
          .staleness = PieceLoss::kNone,
          .consensus_distance = loss};
}

class DueLossesTest : public testing::Test {
 protected:
  void add_whole(std::int64_t step) {
    losses_.add(piece(step, 0, 1));
    losses_.add(piece(step, 1, 3));
  }

  std::vector<std::int64_t> told(const std::vector<std::int64_t>& held = {}, bool all = false) {
    std::vector<std::int64_t> steps;
    while (const auto step = losses_.next(held, all)) steps.push_back(step->step);
    return steps;
  }

  DueLosses losses_;
};

using Steps = std::vector<std::int64_t>;

TEST_F(DueLossesTest, AStepIsTheMeanOfItsPiecesByTheirRows) {
  losses_.add(piece(10, 1, 3, 2));
  EXPECT_FALSE(losses_.next({})) << "the other piece may still come";
  losses_.add(piece(10, 0, 1, 6));
  const auto step = losses_.next({});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->step, 10);
  EXPECT_DOUBLE_EQ(step->loss, 1.5);
  EXPECT_DOUBLE_EQ(step->consensus_distance.value(), 1.5);
  EXPECT_FALSE(step->staleness.has_value());
  EXPECT_FALSE(losses_.next({})) << "it is told of once";
}

TEST_F(DueLossesTest, APieceMadeAgainCountsOnce) {
  losses_.add(piece(1, 0, 1));
  losses_.add(piece(1, 0, 5));
  EXPECT_EQ(told(), Steps());
  losses_.add(piece(1, 1, 3));
  EXPECT_DOUBLE_EQ(losses_.next({})->loss, 4);
}

TEST_F(DueLossesTest, StepsComeInTheirOrder) {
  losses_.add(piece(1, 0, 1));
  add_whole(2);
  EXPECT_EQ(told({1}), Steps()) << "somebody still works on step 1";
  losses_.add(piece(1, 1, 1));
  EXPECT_EQ(told(), (Steps{1, 2}));
  add_whole(4);
  EXPECT_EQ(told({3}), Steps()) << "nobody has told of step 3, but somebody works on it";
  EXPECT_EQ(told({5}), Steps{4});
}

TEST_F(DueLossesTest, APieceThatNeverComesIsNotWaitedForWithoutEnd) {
  losses_.add(piece(1, 0, 1));
  for (std::size_t i = 0; i < DueLosses::kSomeLater; ++i) {
    EXPECT_EQ(told(), Steps());
    add_whole(static_cast<std::int64_t>(2 + i));
  }
  EXPECT_EQ(told({1}), Steps()) << "somebody works on it";
  EXPECT_EQ(told({kHoldsAny}), Steps()) << "somebody may just have got it";
  EXPECT_EQ(told({100, kHoldsNothing}).size(), 1 + DueLosses::kSomeLater);
}

TEST_F(DueLossesTest, NobodyDelaysTheLogForever) {
  losses_.add(piece(1, 0, 1));
  for (std::size_t i = 0; i < DueLosses::kMostLater; ++i) {
    EXPECT_EQ(told({1}), Steps());
    add_whole(static_cast<std::int64_t>(2 + i));
  }
  EXPECT_EQ(losses_.next(Steps{1})->step, 1);
}

TEST_F(DueLossesTest, AtTheEndEverythingIsTold) {
  losses_.add(piece(1, 0, 1));
  losses_.add(piece(3, 0, 1));
  EXPECT_EQ(told({}, true), (Steps{1, 3}));
  EXPECT_TRUE(losses_.empty());
}

TEST_F(DueLossesTest, PiecesWithoutRowsAreNotWaitedFor) {
  losses_.add(piece(1, 0, 2, 8));
  EXPECT_EQ(told(), Steps{1});
  losses_.add(piece(2, 1, 0, 0));
  losses_.add(piece(2, 0, 2, 8));
  EXPECT_DOUBLE_EQ(losses_.next({})->loss, 2);
}

/// The only piece of its step.
PieceLoss piece(std::int64_t step) {
  return {.step = step,
          .part = 0,
          .rows = 1,
          .global_rows = 1,
          .loss = 0,
          .gradient_norm = 0,
          .staleness = PieceLoss::kNone,
          .consensus_distance = PieceLoss::kNone};
}

class LossQueueTest : public testing::Test {
 protected:
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> all;
    for (auto at = queue_.begin(); at < queue_.end(); ++at) all.push_back(queue_.at(at).step);
    return all;
  }

  std::vector<std::uint64_t> memory_ =
      std::vector<std::uint64_t>(LossQueue::bytes_needed() / sizeof(std::uint64_t));
  LossQueue queue_{reinterpret_cast<std::byte*>(memory_.data())};
};

TEST_F(LossQueueTest, KeepsWhatWasPutUntilItIsReleased) {
  EXPECT_EQ(steps(), Steps());
  queue_.put(piece(1));
  queue_.put(piece(2));
  EXPECT_EQ(steps(), (Steps{1, 2}));
  EXPECT_EQ(steps(), (Steps{1, 2})) << "looking takes nothing";
  queue_.release(queue_.begin() + 1);
  EXPECT_EQ(steps(), Steps{2});
  // Whoever comes next finds the same in the same memory.
  LossQueue next(reinterpret_cast<std::byte*>(memory_.data()));
  next.put(piece(3));
  EXPECT_EQ(steps(), (Steps{2, 3}));
}

TEST_F(LossQueueTest, BeginsAgainAtTheFrontWhenItIsEmpty) {
  for (int i = 1; i <= 100; ++i) {
    queue_.put(piece(i));
    EXPECT_EQ(steps(), Steps{i});
    EXPECT_EQ(queue_.begin() % LossQueue::kRoom, 0u);
    queue_.release(queue_.end());
    EXPECT_EQ(steps(), Steps());
  }
}

TEST_F(LossQueueTest, RefusesWhatItHasNoRoomForAndGoesOnWhenItHas) {
  for (std::uint64_t i = 0; i < LossQueue::kRoom; ++i) {
    ASSERT_TRUE(queue_.put(piece(static_cast<std::int64_t>(i))));
  }
  EXPECT_FALSE(queue_.put(piece(-1)));
  queue_.release(queue_.begin() + 1);
  EXPECT_TRUE(queue_.put(piece(7)));
  EXPECT_FALSE(queue_.put(piece(-1)));
  EXPECT_EQ(steps().size(), LossQueue::kRoom);
  EXPECT_EQ(steps().front(), 1);
  EXPECT_EQ(steps().back(), 7);
}

}  // namespace
}  // namespace cohort::launch
