// The launcher with invented processes: deaths, silences and races that no real run can be made to
// have on demand.

#include <gmock/gmock.h>

#include "launch/launch_test_support.h"

namespace cohort::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

TEST_F(LaunchTest, NothingHappensToWorkersToWhomNothingHappens) {
  const LaunchResult result = launch([](const Moment&) { return Fate::lives; });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(result.recovered, IsEmpty());
  EXPECT_TRUE(all_finished());
  EXPECT_THAT(starts_, ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(last_view(), (cluster::View{.generation = 1, .workers = {0, 1, 2, 3}}));
}

TEST_F(LaunchTest, TwoDeathsAtOnceAreTwoReplacements) {
  const LaunchResult result = launch([&](const Moment& moment) {
    const bool is_meant = moment.worker == 1 || moment.worker == 2;
    return moment.life == 0 && moment.step == 10 && is_meant ? dies_with_others(moment, 2)
                                                             : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(numbers_of(result.recovered), UnorderedElementsAre(1, 2));
  for (const TaskFailure& failure : result.recovered) EXPECT_EQ(failure.signal, SIGKILL);
  EXPECT_EQ(result.restarts, 2);
  EXPECT_THAT(starts_, ElementsAre(1, 2, 2, 1));
  EXPECT_TRUE(all_finished());
  EXPECT_EQ(last_view().world(), kLaunchWorkers);
}

// The chief too: whoever has come furthest takes over.
TEST_F(LaunchTest, AllButOneMayDieAtOnce) {
  cluster_.max_restarts = 3;
  const LaunchResult result = launch([&](const Moment& moment) {
    const bool is_meant = moment.life == 0 && moment.step == 10 && moment.worker != 3;
    return is_meant ? dies_with_others(moment, 3) : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(starts_, ElementsAre(2, 2, 2, 1));
  EXPECT_TRUE(all_finished());
  EXPECT_EQ(last_view().workers.front(), 3);
}

TEST_F(LaunchTest, ADeathWhileAnotherIsBeingReplaced) {
  std::atomic<bool> died = false, replaced = false;
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.worker == 1 && moment.life == 0 && moment.step == 10) {
      died = true;
      return Fate::dies;
    }
    // The new process of worker 1 has no group yet, since worker 3 does not come to it.
    if (moment.worker == 1 && moment.life == 1 && moment.step == 0) replaced = true;
    if (moment.worker != 3 || moment.life != 0 || moment.step != 0 || !died) return Fate::lives;
    return replaced ? Fate::dies : Fate::waits;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(numbers_of(result.recovered), ElementsAre(1, 3));
  EXPECT_THAT(starts_, ElementsAre(1, 2, 1, 2));
  EXPECT_TRUE(all_finished());
}

TEST_F(LaunchTest, AReplacementThatDiesBeforeItIsThereIsReplaced) {
  const LaunchResult result = launch([&](const Moment& moment) {
    const bool dies = moment.worker == 2 && ((moment.life == 0 && moment.step == 10) ||
                                             (moment.life == 1 && moment.step == 0));
    return dies ? Fate::dies : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(starts_, ElementsAre(1, 1, 3, 1));
  EXPECT_TRUE(all_finished());
}

TEST_F(LaunchTest, WhoFallsSilentIsEndedAndReplaced) {
  // Longer than what the launcher takes for a pause of its own.
  cluster_.silence_warn_seconds = 1;
  cluster_.silence_lost_seconds = 3;
  const LaunchResult result = launch([&](const Moment& moment) {
    const bool silent = moment.worker == 2 && moment.life == 0 && moment.step == 10;
    return silent ? Fate::falls_silent : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  ASSERT_THAT(result.recovered, SizeIs(1));
  EXPECT_EQ(result.recovered[0].number, 2);
  EXPECT_TRUE(result.recovered[0].was_silent);
  EXPECT_THAT(result.recovered[0].message, HasSubstr("no sign of life"));
  EXPECT_TRUE(all_finished());
}

TEST_F(LaunchTest, WhenTheBudgetRunsOutTheOthersSave) {
  cluster_.max_restarts = 1;
  const LaunchResult result = launch([&](const Moment& moment) {
    const bool dies = moment.life == 0 && ((moment.worker == 1 && moment.step == 10) ||
                                           (moment.worker == 2 && moment.step == 30));
    return dies ? Fate::dies : Fate::lives;
  });
  EXPECT_THAT(numbers_of(result.recovered), ElementsAre(1));
  EXPECT_THAT(numbers_of(result.failures), ElementsAre(2));
  EXPECT_EQ(result.restarts, 1);
  EXPECT_TRUE(control_.is_saved());
  EXPECT_TRUE(last_view().closing);
  EXPECT_THAT(starts_, ElementsAre(1, 2, 1, 1));
  EXPECT_FALSE(all_finished());
}

TEST_F(LaunchTest, EnoughWorkersGoOnWithoutTheLost) {
  cluster_.max_restarts = 0;
  cluster_.min_workers = 2;
  const LaunchResult result = launch([&](const Moment& moment) {
    return moment.worker == 1 && moment.step == 10 ? Fate::dies : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(numbers_of(result.recovered), ElementsAre(1));
  EXPECT_EQ(result.restarts, 0);
  EXPECT_THAT(last_view().workers, UnorderedElementsAre(0, 2, 3));
  for (const int worker : {0, 2, 3}) EXPECT_EQ(control_.card(worker).step.load(), kLaunchSteps);
}

TEST_F(LaunchTest, WhereALossStopsNobodyTheOthersAreNotBroken) {
  traits_ = {.hands_out_work = true};
  cluster_.max_restarts = 0;
  cluster_.min_workers = 1;
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.worker == 1 && moment.step == 10) return all_train() ? Fate::dies : Fate::waits;
    // The others are in the middle of it when the launcher sees the loss.
    return moment.step == 20 && reaped_ == 0 ? Fate::waits : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(numbers_of(result.recovered), ElementsAre(1));
  EXPECT_FALSE(control_.is_broken(1));
  EXPECT_EQ(last_view().generation, 1);
  for (const int worker : {0, 2, 3}) EXPECT_EQ(control_.card(worker).step.load(), kLaunchSteps);
}

TEST_F(LaunchTest, AStopIsAfterTheSameStepForAllOnceTheChiefHasSaved) {
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.worker == 2 && moment.step == 10) requests_.ask({.signal = SIGTERM});
    // Nobody can be through before the request is seen.
    return moment.step == 40 && !control_.stop_requested() ? Fate::waits : Fate::lives;
  });
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_TRUE(control_.is_saved());
  const std::int64_t step = control_.card(0).step.load();
  EXPECT_LT(step, kLaunchSteps);
  for (const WorkerCard& card : control_.cards()) EXPECT_EQ(card.step.load(), step);
}

TEST_F(LaunchTest, ASecondStopEndsAllAtOnce) {
  cluster_.timeout_seconds = 100'000;  // So that nobody is ended for being late.
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.step < 10) return Fate::lives;
    if (moment.worker == 2 && !asked_.exchange(true)) {
      requests_.ask({.signal = SIGINT});
      requests_.ask({.signal = SIGINT});
    }
    return Fate::waits;  // For ever, if nobody ended it.
  });
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_FALSE(control_.is_saved());
  EXPECT_FALSE(all_finished());
}

TEST_F(LaunchTest, FewerWorkersAreSentAwayAndMoreAreStarted) {
  std::atomic<bool> few = false;
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.view.world() == 2) few = true;
    const bool first = moment.view.rank_of(moment.worker) == 0;
    if (first && moment.step == 10 && !few) {
      requests_.ask({.kind = RunRequest::Kind::workers, .workers = 2});
    }
    if (first && moment.step == 30) {
      requests_.ask({.kind = RunRequest::Kind::workers, .workers = 4});
      requests_.ask({.kind = RunRequest::Kind::workers, .workers = 5});
    }
    const bool waits =
        (moment.step == 20 && !few) || (moment.step == 40 && moment.view.world() != 4);
    return waits ? Fate::waits : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(result.recovered, IsEmpty());
  EXPECT_TRUE(all_finished());
  EXPECT_EQ(last_view().world(), 4);
  EXPECT_THAT(starts_, UnorderedElementsAre(1, 1, 2, 2));
  EXPECT_THAT(requests_.answers(),
              testing::Contains(HasSubstr("workers wanted from now on: 2 (before: 4)")));
  EXPECT_THAT(requests_.answers(),
              testing::Contains(HasSubstr("refused: this run can have 1 to 4 workers")));
}

// The second of two newcomers cannot be started; the first is there and all wait for the second.
TEST_F(LaunchTest, AWorkerThatCannotBeStartedYetIsStartedLater) {
  std::atomic<bool> few = false;
  std::atomic<int> tries = 0;
  no_process_ = [&](const ProcessPlan&) { return few && ++tries == 2; };
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.view.world() == 2) few = true;
    const bool first = moment.view.rank_of(moment.worker) == 0;
    if (first && moment.step == 10 && !few) {
      requests_.ask({.kind = RunRequest::Kind::workers, .workers = 2});
    }
    if (first && moment.step == 30) {
      requests_.ask({.kind = RunRequest::Kind::workers, .workers = 4});
    }
    const bool waits =
        (moment.step == 20 && !few) || (moment.step == 40 && moment.view.world() != 4);
    return waits ? Fate::waits : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_GE(tries, 3);
  EXPECT_TRUE(all_finished());
  EXPECT_EQ(last_view().world(), 4);
}

// Where no process can ever be made, a stop is not kept waiting by those that are missing.
TEST_F(LaunchTest, AStopDoesNotWaitForWorkersThatCannotBeStarted) {
  std::atomic<bool> few = false, tried = false;
  no_process_ = [&](const ProcessPlan&) {
    if (few && !tried.exchange(true)) requests_.ask({.signal = SIGTERM});
    return few.load();
  };
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.view.world() == 2 && !few.exchange(true)) {
      requests_.ask({.kind = RunRequest::Kind::workers, .workers = 4});
    }
    if (moment.step == 10 && !few && !asked_.exchange(true)) {
      requests_.ask({.kind = RunRequest::Kind::workers, .workers = 2});
    }
    const bool waits =
        (moment.step == 20 && !few) || (moment.step == 40 && !control_.stop_requested());
    return waits ? Fate::waits : Fate::lives;
  });
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_TRUE(control_.is_saved());
}

}  // namespace
}  // namespace cohort::launch
