// As launch_test.cc, with two servers: servers are started anew with every group, and their loss is
// a new group like any other.

#include <gmock/gmock.h>

#include "launch/launch_test_support.h"

namespace cohort::launch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class LaunchWithServersTest : public LaunchTest {
 protected:
  LaunchWithServersTest() : LaunchTest(2) {}
};

TEST_F(LaunchWithServersTest, ServersEndWithTheirWorkers) {
  const LaunchResult result = launch([](const Moment&) { return Fate::lives; });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_TRUE(all_finished());
  EXPECT_THAT(server_starts_, ElementsAre(1, 1));
  EXPECT_EQ(reconciled_, 0);
}

TEST_F(LaunchWithServersTest, ALostServerIsANewGroupWithNewServers) {
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.server == 1 && moment.life == 0 && moment.step >= 10) return Fate::dies;
    // Nobody is through before the loss is seen.
    return moment.step == 40 && moment.view.generation == 1 ? Fate::waits : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  ASSERT_THAT(result.recovered, SizeIs(1));
  EXPECT_EQ(result.recovered[0].role, "server");
  EXPECT_EQ(result.recovered[0].number, 1);
  EXPECT_TRUE(all_finished());
  EXPECT_THAT(starts_, ElementsAre(1, 1, 1, 1)) << "workers keep their processes";
  EXPECT_THAT(server_starts_, ElementsAre(2, 2));
  EXPECT_EQ(reconciled_, 1);
  EXPECT_EQ(last_view().generation, 2);
}

TEST_F(LaunchWithServersTest, AServerAndAWorkerMayDieAtOnce) {
  const LaunchResult result = launch([&](const Moment& moment) {
    const bool is_meant =
        (moment.server == 0 && moment.step >= 10) || (moment.worker == 2 && moment.step == 15);
    if (moment.life == 0 && is_meant) return dies_with_others(moment, 2);
    return moment.step == 40 && moment.view.generation == 1 ? Fate::waits : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(result.recovered, SizeIs(2));
  EXPECT_TRUE(all_finished());
  EXPECT_THAT(starts_, ElementsAre(1, 1, 2, 1));
}

TEST_F(LaunchWithServersTest, AServerThatDiesAgainBeforeItsGroupHasBegunIsReplacedAgain) {
  cluster_.max_restarts = 3;
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.server == 1 && moment.life == 0 && moment.step >= 10) return Fate::dies;
    if (moment.server == 1 && moment.life == 1) return Fate::dies;
    return moment.step == 40 && moment.view.generation == 1 ? Fate::waits : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(result.recovered, SizeIs(2));
  EXPECT_TRUE(all_finished());
  EXPECT_THAT(server_starts_, ElementsAre(3, 3));
}

// It was asked to end, or others saw its death before the launcher did: the group that follows is
// decided and has servers of its own.
TEST_F(LaunchWithServersTest, AServerThatDiesWhenItsGroupIsOverIsNoReasonForOneMore) {
  std::atomic<bool> server_waits = false;
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.server == 1 && moment.life == 0 && moment.step >= 10) {
      server_waits = true;
      return control_.servers_shall_end(1) ? Fate::dies : Fate::waits;
    }
    const bool is_meant = moment.worker == 2 && moment.life == 0 && moment.step == 20;
    if (!is_meant) return Fate::lives;
    return server_waits ? Fate::dies : Fate::waits;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_THAT(numbers_of(result.recovered), ElementsAre(2, 1));
  EXPECT_TRUE(all_finished());
  EXPECT_THAT(server_starts_, ElementsAre(2, 2));
  EXPECT_EQ(last_view().generation, 2);
}

TEST_F(LaunchWithServersTest, AServerThatCannotBeStartedYetIsStartedLater) {
  std::atomic<int> tries = 0;
  no_process_ = [&](const ProcessPlan& process) {
    return process.generation == 2 && process.servers == std::vector{1} && ++tries == 1;
  };
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.server == 1 && moment.life == 0 && moment.step >= 10) return Fate::dies;
    return moment.step == 40 && moment.view.generation == 1 ? Fate::waits : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_EQ(tries, 2);
  EXPECT_TRUE(all_finished());
  EXPECT_THAT(server_starts_, ElementsAre(2, 2)) << "the one that could be started is kept";
  EXPECT_EQ(last_view().generation, 2);
}

// Nobody is left who could save or tell the servers that it is over.
TEST_F(LaunchWithServersTest, AStopAfterTheLastWorkerEndsTheServers) {
  cluster_.workers = 1;
  cluster_.timeout_seconds = 100'000;  // So that the servers are not ended for being late.
  plans_.erase(plans_.begin() + 1, plans_.begin() + kLaunchWorkers);
  const LaunchResult result = launch([&](const Moment& moment) {
    if (moment.worker != 0 || moment.step != 10) return Fate::lives;
    if (!asked_.exchange(true)) requests_.ask({.signal = SIGTERM});
    return control_.stop_requested() ? Fate::dies : Fate::waits;
  });
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_THAT(numbers_of(result.recovered), ElementsAre(0));
  EXPECT_THAT(server_starts_, ElementsAre(1, 1));
}

TEST_F(LaunchWithServersTest, ASilentServerIsEndedAndReplaced) {
  cluster_.silence_warn_seconds = 1;
  cluster_.silence_lost_seconds = 3;
  const LaunchResult result = launch([&](const Moment& moment) {
    const bool silent = moment.server == 0 && moment.life == 0 && moment.step >= 10;
    if (silent) return Fate::falls_silent;
    return moment.step == 40 && moment.view.generation == 1 ? Fate::waits : Fate::lives;
  });
  EXPECT_THAT(result.failures, IsEmpty());
  ASSERT_THAT(result.recovered, SizeIs(1));
  EXPECT_TRUE(result.recovered[0].was_silent);
  EXPECT_TRUE(all_finished());
}

}  // namespace
}  // namespace cohort::launch
