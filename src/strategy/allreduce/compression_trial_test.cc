// The rule by which "auto" tries codecs and picks one, on invented step times: what is tried, for
// how long, when it is given up, and what is picked.

#include "strategy/allreduce/compression_trial.h"

#include <gtest/gtest.h>

namespace cohort::strategy {
namespace {

struct Ended {
  std::string tried;  ///< A letter per step.
  std::string picked;
};

/// A trial in which a step with plain, a and b always takes as long as given; the first steps of
/// each take `first` times that.
Ended trial_of(double plain, double a, double b, double first = 1, std::int64_t steps = 1000) {
  CompressionTrial trial({"plain", "a", "b"}, steps);
  Ended ended;
  while (!trial.done()) {
    const char kind = trial.current()[0];
    const bool is_first = ended.tried.empty() || ended.tried.back() != kind;
    ended.tried += kind;
    trial.record((kind == 'p' ? plain : kind == 'a' ? a : b) * (is_first ? first : 1));
  }
  ended.picked = trial.kinds()[trial.pick()];
  return ended;
}

TEST(CompressionTrial, TriesEachForTheSameStepsAndForgetsTheFirst) {
  const Ended ended = trial_of(1, 0.5, 0.3, 1.9);
  EXPECT_EQ(ended.tried, "ppppaaaabbbb");
  EXPECT_EQ(ended.picked, "b");
}

TEST(CompressionTrial, PicksTheFastestThatSavesATenth) {
  EXPECT_EQ(trial_of(1, 0.5, 0.6).picked, "a");
  EXPECT_EQ(trial_of(1, 0.95, 0.91).picked, "plain");
  EXPECT_EQ(trial_of(1, 0.95, 0.89).picked, "b");
  EXPECT_EQ(trial_of(1, 2, 3).picked, "plain");
}

TEST(CompressionTrial, GivesUpWhatIsSlowerThanPlainInItsFirstTimedStep) {
  EXPECT_EQ(trial_of(1, 1.1, 0.5).tried, "ppppaabbbb");
}

TEST(CompressionTrial, GivesUpWhatIsTwiceAsSlowInItsFirstStep) {
  EXPECT_EQ(trial_of(1, 2.1, 2.5).tried, "ppppab");
}

TEST(CompressionTrial, LosesAtMostAFiftiethOfTheRunAndOneStep) {
  EXPECT_EQ(trial_of(1, 1.9, 0.1, 1, 30).tried, "ppppa");
  EXPECT_EQ(trial_of(1, 1.9, 0.1, 1, 60).tried, "ppppaa");
  EXPECT_EQ(trial_of(1, 1.9, 0.1, 1, 60).picked, "plain");
}

TEST(CompressionTrial, AStepThatWasDisturbedDoesNotSpeakForCompression) {
  CompressionTrial trial({"plain", "a"}, 1000);
  for (const double seconds : {1.0, 3.0, 1.0, 2.0}) trial.record(seconds);
  for (const double seconds : {1.5, 0.95, 0.95, 0.95}) trial.record(seconds);
  ASSERT_TRUE(trial.done());
  EXPECT_EQ(trial.pick(), 0U);
}

}  // namespace
}  // namespace cohort::strategy
