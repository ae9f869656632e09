// The three ways to go through the steps, each asked by hand what it does next.

#include "train/loop/pace.h"

#include <gmock/gmock.h>

#include <limits>

#include "train/loop/invented_training_test_support.h"

namespace cohort::training {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

Job paced_job(const std::string& strategy, const std::string& consistency = "") {
  Job job;
  job.train.steps = 5;
  job.strategy.kind = strategy;
  if (!consistency.empty()) job.strategy.consistency = consistency;
  return job;
}

/// One worker of a group of two, with its pace.
class Paced {
 public:
  explicit Paced(const Job& job, int worker = 0, bool closing = false)
      : run_(job),
        view_({.generation = 1, .workers = {0, 1}, .closing = closing}),
        strategy_({.rank = worker,
                   .traits = kinds::way_of(job.strategy).traits,
                   .steps = job.train.steps},
                  script_, table_, *model_, calls_),
        log_(life(worker), view_, 0, [] { return std::uint64_t{0}; }),
        pace_(make_pace({life(worker), view_, strategy_, log_})) {}

  Pace* operator->() { return pace_.get(); }
  const Calls& calls() const { return calls_; }
  launch::ControlBlock& control() { return run_.control(); }

 private:
  WorkerLife& life(int worker) { return run_.life(static_cast<std::size_t>(worker)); }

  InventedRun run_;
  cluster::View view_;
  Script script_;
  RoundTable table_{1};
  Calls calls_;
  std::unique_ptr<Model> model_ = wrap(std::make_shared<torch::nn::LinearImpl>(1, 1));
  InventedStrategy strategy_;
  StepLog log_;
  std::unique_ptr<Pace> pace_;
};

TEST(LockstepPace, GoesOnUntilAVoteStopsIt) {
  Paced pace(paced_job("allreduce"));
  EXPECT_EQ(pace->next(3)->step, 3);
  EXPECT_FALSE(pace->next(5)) << "all is done";
  EXPECT_TRUE(pace->may_apply(kNoNumber)) << "the votes say it";
  EXPECT_EQ(pace->validates(), ValidationPart::own_share);
  strategy::StepOutcome outcome{.loss = 3, .stop = true};
  pace->step_done({.rows = 1, .global_rows = 2}, outcome);
  EXPECT_EQ(outcome.loss, 3) << "it is of all rows";
  EXPECT_TRUE(pace->stopped());
  EXPECT_FALSE(pace->next(3));
  EXPECT_EQ(pace->meet(3), std::nullopt);
  EXPECT_EQ(pace->meet(5), 5) << "a stop after the last step stops nothing";
}

TEST(LockstepPace, MakesNoStepInAGroupThatOnlySaves) {
  Paced pace(paced_job("allreduce"), 0, /*closing=*/true);
  EXPECT_TRUE(pace->stopped());
  EXPECT_FALSE(pace->next(0));
}

TEST(AlonePace, StopsAfterTheStepThatTheLauncherChose) {
  Paced pace(paced_job("averaging"));
  EXPECT_EQ(pace->next(1)->step, 1);
  pace.control().request_stop();
  pace.control().set_last_step(3);
  EXPECT_EQ(pace->next(2)->step, 2);
  EXPECT_FALSE(pace->next(3));
  EXPECT_TRUE(pace->stopped());
}

TEST(AlonePace, PassesNoLossOnThatIsNotFinite) {
  Paced pace(paced_job("averaging"));
  EXPECT_TRUE(pace->may_apply(1));
  EXPECT_FALSE(pace->may_apply(kNoNumber));
  strategy::StepOutcome outcome{.loss = 3};
  pace->step_done({.rows = 1, .global_rows = 4}, outcome);
  EXPECT_EQ(outcome.loss, 12) << "the mean over its own rows";
}

TEST(AlonePace, OnlyTheChiefValidatesBetweenSteps) {
  Paced chief(paced_job("averaging"), 0);
  Paced other(paced_job("averaging"), 1);
  EXPECT_EQ(chief->validates(), ValidationPart::whole_set);
  EXPECT_EQ(other->validates(), std::nullopt);
}

TEST(HandedOutPace, AsksForWorkOnlyWhereNoneCameWithTheAnswer) {
  Paced pace(paced_job("parameter-server", "async"));
  EXPECT_EQ(pace->next(0)->step, 0);
  EXPECT_EQ(pace.calls().size(), 1U);
  EXPECT_TRUE(pace->hand_in(1, true));
  EXPECT_FALSE(pace->hand_in(1, false)) << "it does something else first";
  strategy::StepOutcome outcome{.next = cluster::Claim{.step = 4, .part = 1}};
  pace->step_done({.rows = 1, .global_rows = 1}, outcome);
  EXPECT_EQ(pace->next(1)->step, 4);
  EXPECT_EQ(pace.calls().size(), 1U) << "it was not asked for";
  pace->next(5);
  EXPECT_EQ(pace.calls().size(), 2U);
}

}  // namespace
}  // namespace cohort::training
