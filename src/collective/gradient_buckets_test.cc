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

}  // namespace
}  // namespace cohort
