#include "launch/control/loss_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace cohort {
namespace {

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

using Steps = std::vector<std::int64_t>;

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
}  // namespace cohort
