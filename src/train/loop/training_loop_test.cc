// The loop with an invented stepper and strategy, which only remember what they were asked for: who
// is called when, in all three paces, through pauses, stops, divergence and a second group.

#include "train/loop/training_loop.h"

#include <gmock/gmock.h>

#include "base/fail.h"
#include "checkpoint/checkpoint_folder.h"
#include "train/loop/invented_training_test_support.h"

namespace cohort::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using End = TrainingLoop::End;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Job job_of(std::int64_t steps, const std::string& validate = "never") {
  Job job;
  job.train.steps = steps;
  job.train.validate = validate;
  return job;
}

/// Workers that make their steps alone.
Job alone(Job job) {
  job.strategy.kind = "averaging";
  return job;
}

Job handed_out(Job job) {
  job.strategy.kind = "parameter-server";
  job.strategy.consistency = "async";
  return job;
}

/// Those calls that begin so.
Calls only(const Calls& calls, const std::string& beginning) {
  Calls found;
  std::ranges::copy_if(calls, std::back_inserter(found),
                       [&](const std::string& call) { return call.starts_with(beginning); });
  return found;
}

TEST(TrainingLoop, MakesTheStepsInOrderAndThenMeetsTheOthers) {
  InventedRun run(job_of(3));
  const auto seen = run.train({Script{.first_step = 1}});
  EXPECT_EQ(seen[0].end, End::finished);
  EXPECT_EQ(seen[0].steps, 3);
  EXPECT_THAT(seen[0].calls, ElementsAre("compute 1", "finish 1", "compute 2", "finish 2", "meet"));
  EXPECT_EQ(run.life(0).own_steps, 2);
  EXPECT_EQ(run.life(0).samples, 4);
}

TEST(TrainingLoop, ValidatesBetweenTwoEpochsAndAtTheEnd) {
  InventedRun run(job_of(5, "epoch"));
  const auto seen = run.train({Script()});
  EXPECT_THAT(seen[0].calls,
              ElementsAre("compute 0", "finish 0", "compute 1", "finish 1", "evaluate share",
                          "compute 2", "finish 2", "compute 3", "finish 3", "evaluate share",
                          "compute 4", "finish 4", "meet", "evaluate share"));
  EXPECT_EQ(run.life(0).card.result.validation_loss, 3);
  EXPECT_EQ(run.life(0).card.result.accuracy, 0.5);
}

TEST(TrainingLoop, AnEpochAtTheVeryEndIsValidatedOnce) {
  InventedRun run(job_of(2, "epoch"));
  EXPECT_THAT(only(run.train({Script()})[0].calls, "evaluate"), ElementsAre("evaluate share"));
}

TEST(TrainingLoop, WithoutLockstepTheChiefAloneValidatesBetweenSteps) {
  InventedRun run(alone(job_of(4, "epoch")));
  const auto seen = run.train({Script(), Script()});
  EXPECT_THAT(only(seen[0].calls, "evaluate"), ElementsAre("evaluate all", "evaluate share"));
  EXPECT_THAT(only(seen[1].calls, "evaluate"), ElementsAre("evaluate share"));
}

// The newcomer knows nothing of the validation that the other has made.
TEST(TrainingLoop, AValidatedEpochIsNotValidatedAgainInTheNextGroup) {
  InventedRun run(job_of(6, "epoch"));
  const auto breaks = [](std::int64_t step) {
    if (step == 3) fail(ErrorCode::peer_lost, "worker 1 is gone");
  };
  const auto before = run.train({Script{.in_finish = breaks}});
  EXPECT_EQ(before[0].error->code(), ErrorCode::peer_lost);
  EXPECT_EQ(only(before[0].calls, "evaluate").size(), 1U);
  for (const auto& seen : run.train({Script{.first_step = 2}, Script{.first_step = 2}})) {
    EXPECT_THAT(seen.calls, ElementsAre("compute 2", "finish 2", "compute 3", "finish 3",
                                        "evaluate share", "compute 4", "finish 4", "compute 5",
                                        "finish 5", "meet", "evaluate share"));
  }
}

TEST(TrainingLoop, AValidationThatBrokeIsMadeInTheNextGroup) {
  InventedRun run(job_of(3, "epoch"));
  const auto breaks = [] { fail(ErrorCode::peer_lost, "worker 1 is gone"); };
  EXPECT_TRUE(run.train({Script{.in_evaluate = breaks}})[0].error);
  for (const auto& seen : run.train({Script{.first_step = 2}, Script{.first_step = 2}})) {
    EXPECT_THAT(seen.calls,
                ElementsAre("evaluate share", "compute 2", "finish 2", "meet", "evaluate share"));
  }
}

TEST(TrainingLoop, InLockstepAllStopAfterTheStepInWhichOneWasAskedTo) {
  InventedRun run(job_of(100, "epoch"));
  Script asks;
  asks.in_compute = [&](std::int64_t step) {
    if (step == 2) run.control().request_pause(1);
  };
  const auto seen = run.train({asks, Script()});
  for (const auto& worker : seen) {
    EXPECT_EQ(worker.end, End::paused);
    EXPECT_EQ(worker.steps, seen[0].steps);
    EXPECT_THAT(only(worker.calls, "save"), IsEmpty()) << "the run goes on";
  }
  // The other one may have seen it in the same step already.
  EXPECT_TRUE(seen[0].steps == 3 || seen[0].steps == 4) << seen[0].steps;
  EXPECT_EQ(only(seen[0].calls, "evaluate").size(), 1U) << "who stops does not validate";
}

TEST(TrainingLoop, AStopOfTheRunIsSaved) {
  InventedRun run(job_of(100));
  Script asks;
  asks.in_compute = [&](std::int64_t step) {
    if (step == 1) run.control().request_stop();
  };
  const auto seen = run.train({asks});
  EXPECT_EQ(seen[0].end, End::paused);
  EXPECT_THAT(seen[0].calls, ElementsAre("compute 0", "finish 0", "compute 1", "finish 1",
                                         "compute 2 and stop", "finish 2", "meet", "save 3"));
  EXPECT_TRUE(run.control().is_saved());
  EXPECT_TRUE(std::filesystem::exists(run.folder() / "model.safetensors"));
}

// Nobody asks anybody between two averages: the launcher has chosen the step.
TEST(TrainingLoop, WorkersThatGoAloneStopAfterTheStepThatWasChosen) {
  InventedRun run(alone(job_of(100)));
  Script asks;
  asks.in_compute = [&](std::int64_t step) {
    if (step != 2) return;
    run.control().request_stop();
    run.control().set_last_step(run.control().furthest_step(std::vector<int>{0, 1}) + 2);
  };
  const auto seen = run.train({asks, Script{.in_finish = [&](std::int64_t) {
                                 while (!run.control().stop_requested()) std::this_thread::yield();
                               }}});
  for (const auto& worker : seen) {
    EXPECT_EQ(worker.end, End::paused);
    EXPECT_EQ(worker.steps, 5);
  }
}

TEST(TrainingLoop, CheckpointsAreSavedAtTheirStepsAndAtTheEnd) {
  Job job = job_of(7);
  job.checkpoint.every_steps = 3;
  InventedRun run(job);
  Script script;
  // One that is being written would delay the next.
  script.in_compute = [&](std::int64_t) { run.life(0).checkpoints->wait_until_written(); };
  const auto seen = run.train({script, Script()});
  EXPECT_THAT(seen[0].calls,
              ElementsAre("compute 0", "finish 0", "compute 1", "finish 1", "compute 2", "finish 2",
                          "save 3", "compute 3", "finish 3", "compute 4", "finish 4", "compute 5",
                          "finish 5", "save 6", "compute 6", "finish 6", "meet", "save 7"));
  EXPECT_THAT(only(seen[1].calls, "save"), IsEmpty());
  EXPECT_EQ(checkpoint::CheckpointFolder(run.folder() / "checkpoints").newest().checkpoint->step(),
            7);
}

TEST(TrainingLoop, InLockstepAllLeaveOutADivergedStep) {
  Job job = job_of(5);
  job.checkpoint.every_steps = 1;
  InventedRun run(job);
  const auto diverges = [](std::int64_t step) { return step == 1 ? kNan : 1.0; };
  Script chief;
  chief.in_compute = [&](std::int64_t) { run.life(0).checkpoints->wait_until_written(); };
  const auto seen = run.train({chief, Script{.loss = diverges}});
  for (const auto& worker : seen) {
    ASSERT_TRUE(worker.error);
    EXPECT_EQ(worker.error->code(), ErrorCode::diverged);
    EXPECT_EQ(worker.error->rank(), 1);
    EXPECT_THAT(worker.error->what(), HasSubstr("step 2"));
    EXPECT_THAT(only(worker.calls, "compute"), ElementsAre("compute 0", "compute 1"));
  }
  EXPECT_THAT(only(seen[0].calls, "save"), ElementsAre("save 1"));
  EXPECT_EQ(run.life(0).own_steps, 1);
  EXPECT_TRUE(std::filesystem::exists(run.folder() / "model.safetensors"));
}

TEST(TrainingLoop, AWorkerAloneDoesNotHandADivergedStepToTheStrategy) {
  InventedRun run(alone(job_of(5)));
  const auto diverges = [](std::int64_t step) { return step == 1 ? kNan : 1.0; };
  const auto seen = run.train({Script{.loss = diverges}});
  EXPECT_EQ(seen[0].error->code(), ErrorCode::diverged);
  EXPECT_THAT(seen[0].calls, ElementsAre("compute 0", "finish 0", "compute 1"));
}

TEST(TrainingLoop, WorkIsAskedForOnlyWhereItDidNotComeWithTheAnswer) {
  InventedRun run(handed_out(job_of(3)));
  EXPECT_THAT(run.train({Script()})[0].calls,
              ElementsAre("ask for work", "compute 0", "finish 0 and wants next", "compute 1",
                          "finish 1 and wants next", "compute 2", "finish 2 and wants next",
                          "ask for work", "meet"));
}

// Others might have to wait for a piece that lies with a worker which does something else first.
TEST(TrainingLoop, NoPieceIsTakenBeforeAnotherDuty) {
  InventedRun run(handed_out(job_of(3, "epoch")));
  EXPECT_THAT(run.train({Script()})[0].calls,
              ElementsAre("ask for work", "compute 0", "finish 0 and wants next", "compute 1",
                          "finish 1", "evaluate all", "ask for work", "compute 2",
                          "finish 2 and wants next", "ask for work", "meet", "evaluate share"));
}

// The mean over its own rows, of which there are 2 of 4, not its share of the batch's.
TEST(TrainingLoop, TheLossOfAWorkerAloneIsThatOfItsRows) {
  InventedRun run(alone(job_of(1)));
  run.train({Script()});
  EXPECT_EQ(run.life(0).card.loss.load(), 2);
  InventedRun together(job_of(1));
  together.train({Script()});
  EXPECT_EQ(together.life(0).card.loss.load(), 1);
}

}  // namespace
}  // namespace cohort::training
