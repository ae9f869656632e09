#include "collective/gradient_buckets.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

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

}  // namespace
}  // namespace cohort
