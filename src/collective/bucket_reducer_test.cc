// How gradients are cut into buckets, and the reducer's thread beside the one that makes the
// gradients: ranks are threads, buckets become ready in random order, and peers leave midway.

#include "collective/bucket_reducer.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "collective/rank_threads_test_support.h"

namespace cohort::collective {
namespace {

using testing::Each;

TEST(GradientBuckets, TravelFromTheLastParameterToTheFirstAndCoverAll) {
  const std::vector<std::size_t> offsets = {0, 160, 176, 496};
  const auto buckets = GradientBuckets::of(offsets, 528, 16, 64 * sizeof(float));
  ASSERT_EQ(buckets.segments.size(), 2U);
  // The last parameter alone (with the tail: 48 floats) is too small a bucket.
  EXPECT_EQ(buckets.segments[0], (Segment{176, 544}));
  EXPECT_EQ(buckets.segments[1], (Segment{0, 176}));
  EXPECT_EQ(buckets.bucket_of, (std::vector<std::size_t>{1, 1, 0, 0}));
}

TEST(GradientBuckets, OneBucketHoldsASmallModel) {
  const auto buckets = GradientBuckets::of(std::vector<std::size_t>{0, 16}, 32, 16, 1 << 20);
  ASSERT_EQ(buckets.segments.size(), 1U);
  EXPECT_EQ(buckets.segments[0], (Segment{0, 48}));
  EXPECT_EQ(buckets.parameters[0], 2U);
}

TEST(GradientBuckets, WhatTravelsApartHasABucketOfItsOwn) {
  const std::vector<std::size_t> offsets = {0, 160, 176, 496};
  for (unsigned which = 0; which < 16; ++which) {
    SCOPED_TRACE(which);
    std::vector<bool> apart;
    for (std::size_t i = 0; i < offsets.size(); ++i) apart.push_back((which >> i & 1) != 0);
    const auto buckets = GradientBuckets::of(offsets, 528, 16, 64 * sizeof(float), apart);
    ASSERT_EQ(buckets.apart.size(), buckets.segments.size());
    std::size_t end = 544;  // They follow each other without a hole, the tail in the first.
    std::size_t waited_for = 0;
    for (std::size_t i = 0; i < buckets.segments.size(); ++i) {
      EXPECT_EQ(buckets.segments[i].end, end);
      EXPECT_LT(buckets.segments[i].begin, end);
      end = buckets.segments[i].begin;
      waited_for += buckets.parameters[i];
      if (const auto parameter = buckets.apart[i]) {
        EXPECT_EQ(buckets.segments[i].begin, offsets[*parameter]);
        EXPECT_EQ(buckets.parameters[i], 1U);
        EXPECT_LE(buckets.segments[i].end, 528U) << "the tail never travels apart";
      }
    }
    EXPECT_EQ(end, 0U);
    EXPECT_EQ(waited_for, offsets.size());
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const std::size_t bucket = buckets.bucket_of[i];
      EXPECT_LE(buckets.segments[bucket].begin, offsets[i]);
      EXPECT_GT(buckets.segments[bucket].end, offsets[i]);
      EXPECT_EQ(buckets.apart[bucket].has_value(), apart[i]);
    }
  }
}

constexpr std::size_t kParameters = 40;
constexpr std::size_t kEach = 500;
constexpr std::size_t kTail = 16;

GradientBuckets some_buckets() {
  std::vector<std::size_t> offsets;
  for (std::size_t i = 0; i < kParameters; ++i) offsets.push_back(i * kEach);
  return GradientBuckets::of(offsets, kParameters * kEach, kTail, 4 * kEach * sizeof(float));
}

/// One rank's training thread.
class Trainer {
 public:
  Trainer(transport::Transport& transport, bool background)
      : rank_(transport.rank()),
        buffer_(kParameters * kEach + kTail),
        reducer_(transport, buffer_, some_buckets(),
                 {.algorithm = "auto",
                  .hosts = std::vector<int>(static_cast<std::size_t>(transport.size())),
                  .timeout = std::chrono::seconds(60),
                  .background = background,
                  .phases = &phases_,
                  .activity = &activity_}) {}

  void begin(int step) {
    std::fill_n(buffer_.end() - kTail, kTail, value_of(step));
    reducer_.begin_step();
  }

  void make(std::size_t parameter, int step) {
    std::fill_n(buffer_.begin() + static_cast<std::ptrdiff_t>(parameter * kEach), kEach,
                value_of(step));
    reducer_.parameter_ready(parameter);
  }

  std::vector<float> finish() {
    reducer_.wait();
    return buffer_;
  }

  float value_of(int step) const { return static_cast<float>(10 * step + rank_); }

 private:
  int rank_;
  std::vector<float> buffer_;
  PhaseClock phases_;
  Activity activity_;
  BucketReducer reducer_;
};

/// Another one for every rank: gradients become ready in the order of its own backward pass.
std::vector<std::size_t> order_of(int rank, int step) {
  std::vector<std::size_t> order(kParameters);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(step * 100 + rank)));
  return order;
}

TEST(BucketReducer, SumsWhatBecomesReadyInAnyOrder) {
  for (const bool background : {false, true}) {
    run_ranks(3, [&](transport::Transport& transport) {
      Trainer trainer(transport, background);
      for (int step = 0; step < 20; ++step) {
        trainer.begin(step);
        for (const std::size_t parameter : order_of(transport.rank(), step)) {
          trainer.make(parameter, step);
        }
        EXPECT_THAT(trainer.finish(), Each(static_cast<float>(30 * step + 3)));
      }
    });
  }
}

TEST(BucketReducer, TellsTheTrainingThreadThatAPeerIsGone) {
  run_ranks(2, [](transport::Transport& transport) {
    Trainer trainer(transport, true);
    trainer.begin(0);
    // Rank 1 leaves in the middle of its backward pass.
    const std::size_t made = transport.rank() == 1 ? kParameters / 2 : kParameters;
    for (std::size_t i = kParameters; i-- > kParameters - made;) trainer.make(i, 0);
    if (transport.rank() == 1) return transport.close();
    try {
      trainer.finish();
      ADD_FAILURE() << "summed";
    } catch (const Error& error) {
      EXPECT_EQ(error.rank(), 1) << error.what();
    }
  });
}

// A strategy that goes away in the middle of a step closes its transport first.
TEST(BucketReducer, EndsInTheMiddleOfAStep) {
  for (int round = 0; round < 20; ++round) {
    run_ranks(2, [](transport::Transport& transport) {
      Trainer trainer(transport, true);
      trainer.begin(0);
      for (const std::size_t parameter : order_of(transport.rank(), 0)) trainer.make(parameter, 0);
      transport.close();
    });
  }
}

}  // namespace
}  // namespace cohort::collective
