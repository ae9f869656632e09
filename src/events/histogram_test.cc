#include "events/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace cohort {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Histogram, AddsUpItsValues) {
  const Histogram histogram = histogram_of(std::vector<float>{-1, 2, 2, 5});
  EXPECT_EQ(histogram.min, -1);
  EXPECT_EQ(histogram.max, 5);
  EXPECT_EQ(histogram.count, 4);
  EXPECT_EQ(histogram.sum, 8);
  EXPECT_EQ(histogram.sum_of_squares, 34);
}

TEST(Histogram, PutsEveryValueIntoTheBucketOfItsRange) {
  std::vector<float> values(300);
  std::iota(values.begin(), values.end(), 0.0f);
  const Histogram histogram = histogram_of(values);
  ASSERT_EQ(histogram.limits.size(), histogram.counts.size());
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0), 300);
  EXPECT_EQ(histogram.limits.back(), 299);
  double left = histogram.min;
  for (std::size_t i = 0; i < histogram.limits.size(); ++i) {
    EXPECT_GT(histogram.limits[i], left);
    EXPECT_NEAR(histogram.counts[i], 10, 1) << "bucket " << i;
    left = histogram.limits[i];
  }
}

TEST(Histogram, OfEqualValuesHasOneBucket) {
  const Histogram histogram = histogram_of(std::vector<float>{3, 3, 3});
  EXPECT_THAT(histogram.limits, ElementsAre(3));
  EXPECT_THAT(histogram.counts, ElementsAre(3));
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Histogram histogram = histogram_of(std::vector<float>{kNan, 1, -kInfinity, 2});
  EXPECT_EQ(histogram.count, 2);
  EXPECT_EQ(histogram.sum, 3);
  EXPECT_EQ(histogram.min, 1);

  EXPECT_THAT(histogram_of(std::vector<float>{kNan}).limits, IsEmpty());
  EXPECT_EQ(histogram_of({}).count, 0);
}

TEST(Histogram, SpansTheWholeRangeOfFloats) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const Histogram histogram = histogram_of(std::vector<float>{-kMax, 0, kMax});
  EXPECT_EQ(histogram.counts.front(), 1);
  EXPECT_EQ(histogram.counts.back(), 1);
}

}  // namespace
}  // namespace cohort
