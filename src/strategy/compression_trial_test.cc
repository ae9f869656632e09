#include "strategy/compression_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;

TEST(CompressionTrial, TriesEachForTheSameStepsAndForgetsTheFirst) {
  CompressionTrial trial({"none", "topk"});
  for (const double seconds : {90.0, 3.0, 1.0, 2.0}) {
    EXPECT_EQ(trial.current(), "none");
    trial.record(seconds);
  }
  for (const double seconds : {0.0, 7.0, 7.5, 8.0}) {
    EXPECT_EQ(trial.current(), "topk");
    EXPECT_FALSE(trial.done());
    trial.record(seconds);
  }
  ASSERT_TRUE(trial.done());
  EXPECT_THAT(trial.seconds(), ElementsAre(2.0, 7.5));
}

TEST(CompressionTrial, PicksTheFastestThatSavesATenth) {
  EXPECT_EQ(CompressionTrial::pick({1.0, 0.5, 0.3, 0.4}), 2U);
  EXPECT_EQ(CompressionTrial::pick({1.0, 0.95, 0.91, 2}), 0U);
  EXPECT_EQ(CompressionTrial::pick({1.0, 0.95, 0.89, 2}), 2U);
  EXPECT_EQ(CompressionTrial::pick({1.0, 2, 3}), 0U);
}

}  // namespace
}  // namespace cohort
