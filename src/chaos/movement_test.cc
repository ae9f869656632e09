#include "chaos/movement.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"

/// The arithmetic, and the job that is written; that such a job moves as far as it says is for
/// `ctest -R chaos`, which trains it.

namespace cohort::chaos {
namespace {

constexpr double kFactor = 0.999;

std::vector<float> after(const std::vector<float>& weights, double steps) {
  std::vector<float> moved;
  for (const float weight : weights) {
    moved.push_back(static_cast<float>(weight * std::pow(kFactor, steps)));
  }
  return moved;
}

TEST(Movement, IsSeenInWeightsThatOnlyDecay) {
  const std::vector<float> weights = {0.5F, -0.25F, 1e-3F};
  EXPECT_NEAR(steps_between(weights, after(weights, 400), kFactor), 400, 0.1);
  EXPECT_NEAR(steps_between(weights, after(weights, 1182), kFactor), 1182, 0.1);
  EXPECT_NEAR(steps_between(weights, weights, kFactor), 0, 1e-6);
  EXPECT_FALSE(std::isfinite(steps_between(weights, {0, 0, 0}, kFactor)));
  EXPECT_THROW(steps_between(weights, {1}, kFactor), std::exception);
}

TEST(Movement, TheJobKeepsWhatTheUserSaysOfTheCluster) {
  const TemporaryFolder folder;
  ChaosOptions options;
  options.job_file = "users.toml";
  options.folder = folder.path();
  options.size = {.workers = 4, .servers = 2};
  options.cluster_settings = {"cluster.timeout_seconds=7"};
  options.overrides = {"train.steps=5", "cluster.max_restarts=0", "cluster.servers=9"};
  const MovementJob job(options);
  EXPECT_EQ(job.options().overrides,
            (std::vector<std::string>{"cluster.timeout_seconds=7", "cluster.max_restarts=0"}));
  EXPECT_NE(job.options().job_file, "users.toml");
  const std::string text = read_file(job.options().job_file);
  EXPECT_NE(text.find("workers = 4"), std::string::npos) << text;
}

}  // namespace
}  // namespace cohort::chaos
