// The merges by themselves, compared with sums in double precision, for sizes around the blocks and
// lanes they are made in.

#include "gossip/push_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace cohort::gossip {
namespace {

std::vector<float> random_model(std::size_t count, std::uint64_t stream) {
  Random random(3, stream);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double relative_distance(const std::vector<float>& own, const std::vector<float>& other) {
  std::vector<double> difference;
  for (std::size_t i = 0; i < own.size(); ++i) difference.push_back(double{own[i]} - other[i]);
  return norm(difference) / norm({own.begin(), own.end()});
}

TEST(PushSum, TakesTheMeanByWeights) {
  for (const std::size_t count : {1U, 15U, 16U, 2047U, 2048U, 5000U}) {
    for (const std::size_t peers : {1U, 2U, 5U}) {
      const auto own = random_model(count, 0);
      std::vector<std::vector<float>> others;
      std::vector<WeightedModel> arrived;
      for (std::size_t i = 0; i < peers; ++i) others.push_back(random_model(count, i + 1));
      double total = 0.75;
      double distance = 0;
      for (std::size_t i = 0; i < peers; ++i) {
        arrived.push_back({others[i], 0.25 * static_cast<double>(i + 1)});
        total += arrived.back().weight;
        distance += relative_distance(own, others[i]) / static_cast<double>(peers);
      }
      auto merged = own;
      const Merged result = merge_models(merged, 0.75, arrived);
      EXPECT_DOUBLE_EQ(result.weight, total);
      EXPECT_NEAR(result.distance, distance, 1e-5);
      for (std::size_t c = 0; c < count; ++c) {
        double expected = 0.75 * own[c];
        for (const auto& model : arrived) expected += model.weight * model.values[c];
        ASSERT_NEAR(merged[c], expected / total, 1e-6) << c << " of " << count;
      }
    }
  }
}

TEST(PushSum, LeavesEqualModelsAsTheyAre) {
  const auto own = random_model(1000, 0);
  auto merged = own;
  const std::vector<WeightedModel> arrived = {{own, 0.3}, {own, 0.1}};
  const Merged result = merge_models(merged, 0.7, arrived);
  EXPECT_EQ(merged, own);
  EXPECT_EQ(result.distance, 0);
}

TEST(PushSum, AModelWithoutWeightIsOnlyMeasured) {
  const auto own = random_model(100, 0);
  const auto other = random_model(100, 1);
  auto merged = own;
  const std::vector<WeightedModel> arrived = {{other, 0}};
  const Merged result = merge_models(merged, 0.5, arrived);
  EXPECT_EQ(merged, own);
  EXPECT_EQ(result.weight, 0.5);
  EXPECT_NEAR(result.distance, relative_distance(own, other), 1e-6);
}

TEST(PushSum, MergesOnlyTheCoordinatesThatCame) {
  const auto own = random_model(3001, 0);
  auto other = random_model(3001, 1);
  std::vector<float> own_part;
  std::vector<float> other_part;
  for (std::size_t i = 0; i < other.size(); ++i) {
    if (i % 3 != 0) other[i] = 0;
    if (other[i] == 0) continue;
    own_part.push_back(own[i]);
    other_part.push_back(other[i]);
  }
  auto merged = own;
  const Merged result = merge_coordinates(merged, 1, {other, 0.5});
  EXPECT_EQ(result.weight, 1.5);
  EXPECT_NEAR(result.distance, relative_distance(own_part, other_part), 1e-5);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (other[i] == 0) {
      ASSERT_EQ(merged[i], own[i]);
    } else {
      ASSERT_NEAR(merged[i], (own[i] + 0.5 * other[i]) / 1.5, 1e-6);
    }
  }
}

}  // namespace
}  // namespace cohort::gossip
