// The launcher with invented processes: deaths, silences and races that no real run can be made to
// have on demand.

#include "launch/launch.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <mutex>
#include <set>

#include "cluster/prefix_store.h"
#include "launch/invented_processes_test_support.h"

namespace cohort {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using Fate = InventedWorker::Fate;
using Moment = InventedWorker::Moment;

constexpr int kWorkers = 4;
constexpr std::int64_t kSteps = 60;

class LaunchTest : public testing::Test {
 protected:
  LaunchTest() {
    cluster_.workers = kWorkers;
    cluster_.timeout_seconds = 20;
    cluster_.silence_warn_seconds = 5;
    cluster_.silence_lost_seconds = 10;
    for (int worker = 0; worker < kWorkers; ++worker) {
      plans_.push_back({.ranks = {worker}, .world = kWorkers});
    }
  }

  LaunchResult launch(const InventedWorker::Plan& plan) {
    InventedProcesses processes({.control = control_,
                                 .store = store_,
                                 .steps = kSteps,
                                 .lockstep = traits_.lockstep,
                                 .plan = plan,
                                 .reaped = &reaped_});
    RunOptions quiet;
    quiet.quiet = true;
    Progress progress(quiet, control_, kWorkers);
    RunStatus status("");
    const LaunchResult result = launch_workers(
        {.cluster = cluster_,
         .traits = traits_,
         .control = control_,
         .processes = processes,
         .plans = plans_,
         .progress = progress,
         .status = status,
         .log_of = [](const ProcessPlan&) { return std::filesystem::path(); },
         .connect = [this](Deadline) { return std::make_unique<PrefixStore>(store_, ""); }});
    for (int worker = 0; worker < kWorkers; ++worker) starts_.push_back(processes.started(worker));
    return result;
  }

  /// The last group that was formed.
  View last_view() {
    View last;
    for (std::int64_t epoch = 1; const auto text = store_.find(view_key(epoch)); ++epoch) {
      const View view = view_from(*text);
      if (!view.workers.empty()) last = view;
    }
    return last;
  }

  bool all_finished() const {
    return std::ranges::all_of(control_.slots(), [](const WorkerSlot& slot) {
      return slot.finished.load() && slot.step.load() == kSteps;
    });
  }

  /// Dies when as many have come here.
  Fate dies_with_others(const Moment& moment, int others) {
    const std::lock_guard lock(mutex_);
    dying_.insert(moment.worker);
    return static_cast<int>(dying_.size()) == others ? Fate::dies : Fate::waits;
  }

  bool all_train() const {
    return std::ranges::all_of(control_.slots(), [](const WorkerSlot& slot) {
      return slot.state.load() == WorkerState::training;
    });
  }

  static std::vector<int> ranks_of(const std::vector<WorkerFailure>& failures) {
    std::vector<int> ranks;
    for (const WorkerFailure& failure : failures) ranks.push_back(failure.rank);
    return ranks;
  }

  ClusterOptions cluster_;
  StrategyTraits traits_{.lockstep = true, .loss_stops_all = true};
  ControlBlock control_{kWorkers, 0};
  MemoryStore store_;
  std::vector<ProcessPlan> plans_;
  std::vector<int> starts_;  // Processes that each worker has had.
  std::atomic<int> reaped_ = 0;
  std::mutex mutex_;
  std::set<int> dying_;
};

TEST_F(LaunchTest, NothingHappensToWorkersToWhomNothingHappens) {
  const LaunchResult result = launch([](const Moment&) { return Fate::lives; });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(result.recovered, IsEmpty());
  EXPECT_TRUE(all_finished());
  EXPECT_THAT(starts_, ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(last_view(), (View{.epoch = 1, .workers = {0, 1, 2, 3}}));
}

TEST_F(LaunchTest, TwoDeathsAtOnceAreTwoReplacements) {
  const LaunchResult result = launch([&](const Moment& moment) {
    const bool is_meant = moment.worker == 1 || moment.worker == 2;
    return moment.life == 0 && moment.step == 10 && is_meant ? dies_with_others(moment, 2)
                                                             : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(ranks_of(result.recovered), UnorderedElementsAre(1, 2));
  for (const WorkerFailure& failure : result.recovered) EXPECT_EQ(failure.signal, SIGKILL);
  EXPECT_EQ(result.restarts, 2);
  EXPECT_THAT(starts_, ElementsAre(1, 2, 2, 1));
  EXPECT_TRUE(all_finished());
  EXPECT_EQ(last_view().world(), kWorkers);
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
  EXPECT_THAT(ranks_of(result.recovered), ElementsAre(1, 3));
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
  EXPECT_EQ(result.recovered[0].rank, 2);
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
  EXPECT_THAT(ranks_of(result.recovered), ElementsAre(1));
  EXPECT_THAT(ranks_of(result.failures), ElementsAre(2));
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
  EXPECT_THAT(ranks_of(result.recovered), ElementsAre(1));
  EXPECT_EQ(result.restarts, 0);
  EXPECT_THAT(last_view().workers, UnorderedElementsAre(0, 2, 3));
  for (const int worker : {0, 2, 3}) EXPECT_EQ(control_.slot(worker).step.load(), kSteps);
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
  EXPECT_THAT(ranks_of(result.recovered), ElementsAre(1));
  EXPECT_FALSE(control_.is_broken(1));
  EXPECT_EQ(last_view().epoch, 1);
  for (const int worker : {0, 2, 3}) EXPECT_EQ(control_.slot(worker).step.load(), kSteps);
}

TEST_F(LaunchTest, ASignalStopsAllAfterTheSameStepOnceTheChiefHasSaved) {
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.worker == 2 && moment.step == 10) ::kill(::getpid(), SIGTERM);
    // Nobody can be through before the signal is seen.
    return moment.step == 40 && !control_.stop_requested() ? Fate::waits : Fate::lives;
  });
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_TRUE(control_.is_saved());
  const std::int64_t step = control_.slot(0).step.load();
  EXPECT_LT(step, kSteps);
  for (const WorkerSlot& slot : control_.slots()) EXPECT_EQ(slot.step.load(), step);
}

}  // namespace
}  // namespace cohort
