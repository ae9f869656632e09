// Updates that are shares of a step move the parameters as far as whole steps do, however the steps
// are cut.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "optimizer/optimizer.h"

namespace cohort::optimizer {
namespace {

struct Rule {
  std::string name;
  OptimizerOptions options;
};

void PrintTo(const Rule& rule, std::ostream* out) {
  *out << rule.name;
}

/// One parameter and its slots.
struct Trained {
  explicit Trained(const OptimizerOptions& options)
      : lr(options.lr), rule(make_optimizer(options)), slots(rule->slots().size()) {}

  void update(float gradient, double share) {
    std::vector<std::span<float>> spans;
    for (float& slot : slots) spans.emplace_back(&slot, 1);
    rule->update({&parameter, 1}, {&gradient, 1}, spans,
                 {.lr = lr, .step = ++updates, .share = share});
  }

  double lr;
  std::unique_ptr<Optimizer> rule;
  std::vector<float> slots;
  float parameter = 5;
  std::int64_t updates = 0;
};

constexpr int kSteps = 200;
constexpr std::array kShares = {0.25, 0.5, 0.05, 0.2, 0.75, 0.25, 2.0};  // Of four steps.

class ShareOfStep : public ::testing::TestWithParam<Rule> {};

void expect_same_movement(const OptimizerOptions& options, float gradient) {
  Trained whole(options);
  Trained cut(options);
  ASSERT_NEAR(std::accumulate(kShares.begin(), kShares.end(), 0.0), 4, 1e-12);
  for (int step = 0; step < kSteps; ++step) whole.update(gradient, 1);
  for (int round = 0; round < kSteps / 4; ++round) {
    for (const double share : kShares) cut.update(gradient, share);
  }
  const double moved = whole.parameter - 5;
  ASSERT_GT(std::abs(moved), 0.01);
  EXPECT_NEAR((cut.parameter - 5) / moved, 1, 0.02);
  const bool of_updates = options.kind.starts_with("adam");  // Whatever their shares.
  for (std::size_t slot = 0; slot < whole.slots.size() && !of_updates; ++slot) {
    EXPECT_NEAR(cut.slots[slot] / whole.slots[slot], 1, 0.03);
  }
}

TEST_P(ShareOfStep, SameGradientAgainAndAgainMovesAsFarAsWholeSteps) {
  expect_same_movement(GetParam().options, 0.3F);
}

TEST_P(ShareOfStep, WeightDecayAloneMovesAsFarAsWholeSteps) {
  expect_same_movement(GetParam().options, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ShareOfStep,
    ::testing::Values(
        Rule{"sgd", {.kind = "sgd", .lr = 0.01, .weight_decay = 0.05}},
        Rule{"momentum", {.kind = "sgd", .lr = 0.001, .momentum = 0.9, .weight_decay = 0.05}},
        Rule{"nesterov",
             {.kind = "sgd", .lr = 0.001, .momentum = 0.9, .nesterov = true, .weight_decay = 0.05}},
        Rule{"adam", {.kind = "adam", .lr = 0.001, .weight_decay = 0.05}},
        Rule{"adamw", {.kind = "adamw", .lr = 0.001, .weight_decay = 0.05}},
        Rule{"adagrad", {.kind = "adagrad", .lr = 0.01, .weight_decay = 0.05}}),
    [](const auto& test) { return test.param.name; });

TEST(WithoutMomentum, DecaysAsMuchAsTheVelocityWouldAddUp) {
  const OptimizerOptions plain =
      without_momentum({.kind = "sgd", .momentum = 0.75, .nesterov = true, .weight_decay = 0.01});
  EXPECT_EQ(plain.momentum, 0);
  EXPECT_FALSE(plain.nesterov);
  EXPECT_DOUBLE_EQ(plain.weight_decay, 0.04);
}

}  // namespace
}  // namespace cohort::optimizer
