// Proves the rate of single steps against numbers worked out by hand, and which schedules are
// refused.

#include "optimizer/learning_rate.h"

#include <cohort/error.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace cohort::optimizer {
namespace {

double rate(const ScheduleOptions& schedule, std::int64_t step, std::int64_t workers = 1) {
  return learning_rate(schedule, 0.8, step, 11, workers);
}

TEST(LearningRate, ConstantStaysWhereItIs) {
  EXPECT_DOUBLE_EQ(rate({}, 0), 0.8);
  EXPECT_DOUBLE_EQ(rate({}, 10), 0.8);
}

TEST(LearningRate, StepCutsEveryStepSize) {
  const ScheduleOptions schedule{.kind = "step", .step_size = 3, .gamma = 0.5};
  EXPECT_DOUBLE_EQ(rate(schedule, 0), 0.8);
  EXPECT_DOUBLE_EQ(rate(schedule, 2), 0.8);
  EXPECT_DOUBLE_EQ(rate(schedule, 3), 0.4);
  EXPECT_DOUBLE_EQ(rate(schedule, 6), 0.2);
}

TEST(LearningRate, CosineEndsAtTheFinalRate) {
  const ScheduleOptions schedule{.kind = "cosine", .final_lr = 0.2};
  EXPECT_DOUBLE_EQ(rate(schedule, 0), 0.8);
  EXPECT_NEAR(rate(schedule, 5), 0.5, 1e-12);
  EXPECT_NEAR(rate(schedule, 10), 0.2, 1e-12);
  EXPECT_NEAR(rate(schedule, 100), 0.2, 1e-12);
}

TEST(LearningRate, WarmUpGrowsLinearlyAndHandsOverWithoutAJump) {
  const ScheduleOptions constant{.warmup_steps = 4};
  EXPECT_DOUBLE_EQ(rate(constant, 0), 0.2);
  EXPECT_DOUBLE_EQ(rate(constant, 1), 0.4);
  EXPECT_DOUBLE_EQ(rate(constant, 3), 0.8);
  EXPECT_DOUBLE_EQ(rate(constant, 4), 0.8);

  const ScheduleOptions cosine{.kind = "cosine", .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(rate(cosine, 0), 0.2);
  EXPECT_DOUBLE_EQ(rate(cosine, 4), 0.8);
  EXPECT_NEAR(rate(cosine, 7), 0.4, 1e-12);
  EXPECT_NEAR(rate(cosine, 10), 0, 1e-12);
}

TEST(LearningRate, IsMultipliedByTheWorkersOnlyOnRequest) {
  EXPECT_DOUBLE_EQ(rate({}, 0, 4), 0.8);
  const ScheduleOptions schedule{.warmup_steps = 2, .scale_by_workers = true};
  EXPECT_DOUBLE_EQ(rate(schedule, 0, 4), 1.6);
  EXPECT_DOUBLE_EQ(rate(schedule, 5, 4), 3.2);
}

TEST(LearningRate, IsNeverMoreThanTheMost) {
  constexpr std::int64_t kSteps = 11;
  for (const ScheduleOptions& schedule :
       {ScheduleOptions{}, ScheduleOptions{.warmup_steps = 20},
        ScheduleOptions{.kind = "step", .warmup_steps = 3, .step_size = 2, .gamma = 0.5},
        ScheduleOptions{.kind = "step", .step_size = 2, .gamma = 1.5, .scale_by_workers = true},
        ScheduleOptions{.kind = "cosine", .warmup_steps = 4, .final_lr = 0.1},
        ScheduleOptions{.kind = "cosine", .final_lr = 3, .scale_by_workers = true}}) {
    const double most = most_learning_rate(schedule, 0.8, kSteps, 4);
    double largest = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      largest = std::max(largest, rate(schedule, step, 4));
    }
    EXPECT_LE(largest, most) << schedule.kind;
    if (schedule.warmup_steps > 0) continue;  // It may never come to its rate.
    EXPECT_NEAR(largest, most, 1e-6) << schedule.kind;
  }
}

TEST(LearningRate, CosineOfOneStepIsTheBaseRate) {
  EXPECT_DOUBLE_EQ(learning_rate({.kind = "cosine"}, 0.8, 0, 1, 1), 0.8);
}

TEST(DecayOfRate, IsAdagradsAndGoesBySteps) {
  const OptimizerOptions adagrad{.kind = "adagrad", .lr_decay = 0.3};
  EXPECT_EQ(decay_of_rate(adagrad, 0), 1);
  EXPECT_DOUBLE_EQ(decay_of_rate(adagrad, 10), 0.25);
  EXPECT_EQ(decay_of_rate({.kind = "sgd", .lr_decay = 0.3}, 10), 1);
}

TEST(CheckSchedule, AcceptsWhatMakesSense) {
  EXPECT_NO_THROW(check_schedule({}));
  EXPECT_NO_THROW(check_schedule({.kind = "step", .step_size = 1}));
  EXPECT_NO_THROW(check_schedule({.kind = "cosine", .warmup_steps = 10, .final_lr = 0.1}));
}

class WrongSchedule : public testing::TestWithParam<ScheduleOptions> {};

TEST_P(WrongSchedule, IsInvalid) {
  try {
    check_schedule(GetParam());
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
  }
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

INSTANTIATE_TEST_SUITE_P(
    Of, WrongSchedule,
    testing::Values(ScheduleOptions{.kind = "cosinus"}, ScheduleOptions{.warmup_steps = -1},
                    ScheduleOptions{.kind = "step"}, ScheduleOptions{.gamma = 0},
                    ScheduleOptions{.gamma = kInfinity}, ScheduleOptions{.final_lr = -1},
                    ScheduleOptions{.final_lr = kInfinity}));

}  // namespace
}  // namespace cohort::optimizer
