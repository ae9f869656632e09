// Sentences about workers that hold up the others, from cards that a test has filled.

#include "launch/stragglers.h"

#include <gmock/gmock.h>

namespace cohort::launch {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using namespace std::chrono_literals;

class StallReportTest : public testing::Test {
 protected:
  void wait(int worker, std::int64_t step, Clock::time_point since, int bucket = -1) {
    WorkerCard& card = control_.card(worker);
    card.step.store(step);
    card.activity.since.store(since.time_since_epoch().count());
    card.activity.index.store(bucket);
    card.activity.waiting.store(bucket < 0 ? WaitFor::gradients : WaitFor::bucket);
  }

  ControlBlock control_{4, 0};
  cluster::View view_{.generation = 1, .workers = {0, 1, 2, 3}};
  StallReport report_;
  Clock::time_point now_ = Clock::now();
};

TEST_F(StallReportTest, SaysNothingWhileAllWorkOrWaitBriefly) {
  EXPECT_FALSE(report_.look(control_, view_, now_));
  wait(0, 119, now_ - 9s);
  EXPECT_FALSE(report_.look(control_, view_, now_));
}

TEST_F(StallReportTest, NamesThoseThatDoNotWaitOncePerTenSeconds) {
  wait(0, 119, now_ - 11s);
  wait(2, 119, now_ - 10s);
  EXPECT_EQ(report_.look(control_, view_, now_),
            "waiting 11 s for ranks 1, 3 in step 120, all-reduce of the gradients");
  EXPECT_FALSE(report_.look(control_, view_, now_ + 5s));
  wait(1, 119, now_);
  EXPECT_EQ(report_.look(control_, view_, now_ + 10s),
            "waiting 21 s for rank 3 in step 120, all-reduce of the gradients");
}

TEST_F(StallReportTest, WhereAllWaitNamesThoseFurthestBehind) {
  for (int worker = 0; worker < 4; ++worker) wait(worker, worker == 2 ? 6 : 7, now_ - 12s);
  EXPECT_EQ(report_.look(control_, view_, now_),
            "waiting 12 s for rank 2 in step 8, all-reduce of the gradients");
}

TEST_F(StallReportTest, SaysWhatTheAwaitedAreBusyWith) {
  for (int worker = 1; worker < 4; ++worker) wait(worker, 60, now_ - 12s);
  const Working working(control_.card(0).activity, BusyWith::saving);
  EXPECT_EQ(report_.look(control_, view_, now_),
            "waiting 12 s for rank 0 in step 61, all-reduce of the gradients; rank 0 is saving");
}

TEST_F(StallReportTest, SaysWhichBucketItIs) {
  wait(0, 119, now_ - 10s, 2);
  EXPECT_EQ(report_.look(control_, cluster::View{.generation = 1, .workers = {0, 1}}, now_),
            "waiting 10 s for rank 1 in step 120, all-reduce of bucket 2");
}

TEST_F(StallReportTest, TellsOfTheNextStallAtOnce) {
  wait(0, 119, now_ - 11s);
  EXPECT_TRUE(report_.look(control_, view_, now_));
  wait(0, 130, now_ + 1s);
  EXPECT_FALSE(report_.look(control_, view_, now_ + 2s));
  EXPECT_TRUE(report_.look(control_, view_, now_ + 11s));
}

TEST(SlowWorkers, AreThoseOfTwiceTheMedian) {
  EXPECT_THAT(slow_workers(std::vector{0.01, 0.011, 0.04, 0.009}),
              ElementsAre(Field(&SlowWorker::worker, 2)));
  EXPECT_THAT(slow_workers(std::vector{0.01, 0.019, 0.012}), IsEmpty());
}

TEST(SlowWorkers, OneOfTwoCanBeSlow) {
  EXPECT_THAT(slow_workers(std::vector{0.04, 0.01}), ElementsAre(Field(&SlowWorker::worker, 0)));
}

TEST(SlowWorkers, NobodyIsComparedWithWhatIsNotKnown) {
  EXPECT_THAT(slow_workers(std::vector{0.04, 0.0}), IsEmpty());
  EXPECT_THAT(slow_workers(std::vector{0.01, 0.0, 0.05}),
              ElementsAre(Field(&SlowWorker::worker, 2)));
}

TEST(SlowWorkers, AreNamedWithBothTimes) {
  EXPECT_EQ(describe(SlowWorker{3, 0.0412, 0.01}),
            "worker 3 is slow: 41.2 ms for a step, the median is 10.0 ms");
}

TEST(SlowReport, NamesAWorkerOnceAndOnlyAfterItsFirstSteps) {
  ControlBlock control(2, 0);
  for (const int worker : {0, 1}) {
    control.card(worker).state = TaskState::training;
    control.card(worker).step_seconds = worker == 0 ? 0.01 : 0.05;
    control.card(worker).step = 19;
  }
  SlowReport report;
  EXPECT_THAT(report.look(control), IsEmpty());
  for (const int worker : {0, 1}) control.card(worker).step = 20;
  EXPECT_THAT(report.look(control),
              ElementsAre("worker 1 is slow: 50.0 ms for a step, the median is 10.0 ms"));
  EXPECT_THAT(report.look(control), IsEmpty());
}

}  // namespace
}  // namespace cohort::launch
