// Which steps are logged, and what is counted of all: by an invented training that writes a real
// metrics.jsonl.

#include "train/loop/step_log.h"

#include <gmock/gmock.h>

#include "train/loop/invented_training_test_support.h"
#include "train/loop/step_rate.h"

namespace cohort::training {
namespace {

using ::testing::ElementsAre;

Job job_with_log(std::int64_t steps, std::int64_t every) {
  Job job;
  job.train.steps = steps;
  job.train.validate = "never";
  job.log.every_steps = every;
  return job;
}

std::vector<std::int64_t> logged_steps(const InventedRun& run) {
  std::vector<std::int64_t> steps;
  MetricsTail().read(run.folder(), [&](const StepReport& step) { steps.push_back(step.step); });
  return steps;
}

TEST(StepLog, TellsOfTheFirstStepEveryMultipleAndTheLast) {
  InventedRun run(job_with_log(8, 3));
  run.train({Script()});
  EXPECT_THAT(logged_steps(run), ElementsAre(1, 3, 6, 8));
  EXPECT_EQ(run.control().logged_step(), 8);
}

TEST(StepLog, OfARunThatGoesOnHasTheLinesOfOneThatWasNotInterrupted) {
  InventedRun run(job_with_log(8, 3));
  run.train({Script{.first_step = 4}});
  EXPECT_THAT(logged_steps(run), ElementsAre(6, 8));
}

TEST(StepLog, OfTheNextGroupRepeatsNothing) {
  InventedRun run(job_with_log(8, 3));
  const auto breaks = [](std::int64_t step) {
    if (step == 6) throw Error(ErrorCode::peer_lost, "worker 1 is gone");
  };
  run.train({Script{.in_finish = breaks}});
  EXPECT_THAT(logged_steps(run), ElementsAre(1, 3, 6));
  run.train({Script{.first_step = 6}});
  EXPECT_THAT(logged_steps(run), ElementsAre(1, 3, 6, 8));
}

// Nobody but the chief writes; its loss is that of all workers.
TEST(StepLog, IsTheChiefs) {
  InventedRun run(job_with_log(2, 1));
  run.train({Script(), Script()});
  std::vector<double> losses;
  MetricsTail().read(run.folder(), [&](const StepReport& step) { losses.push_back(step.loss); });
  EXPECT_THAT(losses, ElementsAre(2, 2));
}

TEST(StepBooks, CountAcrossGroups) {
  InventedRun run(job_with_log(5, 1));
  const auto breaks = [](std::int64_t step) {
    if (step == 3) throw Error(ErrorCode::peer_lost, "worker 1 is gone");
  };
  run.train({Script{.in_finish = breaks}});
  run.train({Script{.first_step = 3}});
  const launch::WorkerCard& card = run.life(0).card;
  EXPECT_EQ(card.step.load(), 5);
  EXPECT_EQ(card.epoch.load(), 2.5);
  EXPECT_EQ(card.samples.load(), 10) << "two rows of each step, the broken one once";
  EXPECT_EQ(card.result.samples, 10);
  EXPECT_EQ(card.result.own_steps, 5);
  EXPECT_EQ(card.result.steps, 5);
  EXPECT_STREQ(card.result.engine.data(), "invented");
}

TEST(StepRate, LeavesOutTheFirstSteps) {
  StepRate rate;
  rate.start();
  for (std::int64_t step = 0; step < StepRate::kWarmUpSteps; ++step) rate.step_done(4);
  EXPECT_EQ(rate.steady(), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // So that time passes.
  rate.step_done(4);
  EXPECT_GT(rate.steady(), 0);
  EXPECT_GE(rate.seconds(), 0.001);
}

TEST(StepRate, AWindowBeginsWhereTheLastOneEnded) {
  StepRate rate;
  rate.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  rate.step_done(4);
  EXPECT_GT(rate.take_window().samples_per_second, 0);
  EXPECT_EQ(rate.take_window().samples_per_second, 0);
  EXPECT_EQ(rate.take_window().seconds, 0);
}

TEST(StepRate, APauseTakesNoTime) {
  const auto begin = Clock::now();
  StepRate rate;
  rate.start();
  double paused = 0;
  {
    const StepRate::Pause pause(rate);
    const auto within = Clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    paused = seconds_since(within);
  }
  rate.step_done(1);
  EXPECT_LE(rate.seconds(), seconds_since(begin) - paused);
}

}  // namespace
}  // namespace cohort::training
