// Proves the decisions of the launcher, told event by event without any process: who waits for
// whom, who is chief, who is sent away.

#include "cluster/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.h"

namespace cohort::cluster {
namespace {

using testing::ElementsAre;

Membership group(int workers, int min_workers, bool loss_stops_all = true) {
  Membership membership(
      {.workers = workers, .min_workers = min_workers, .loss_stops_all = loss_stops_all});
  for (int worker = 0; worker < workers; ++worker) {
    membership.await(worker);
    membership.ready(worker, -1);
  }
  return membership;
}

TEST(MembershipTest, TheFirstViewWaitsForAllThatWereStarted) {
  Membership membership({.workers = 2, .min_workers = 1});
  membership.await(0);
  membership.await(1);
  EXPECT_FALSE(membership.next());
  membership.ready(1, -1);
  EXPECT_FALSE(membership.next());
  membership.ready(0, -1);
  const auto view = membership.next();
  ASSERT_TRUE(view);
  EXPECT_EQ(view->generation, 1);
  EXPECT_THAT(view->workers, ElementsAre(0, 1));
  EXPECT_FALSE(membership.wants_pause());
  EXPECT_FALSE(membership.next());
}

TEST(MembershipTest, SurvivorsWaitForTheReplacementAndKeepTheirOrder) {
  Membership membership = group(3, 3);
  membership.next();
  membership.lose(1);
  EXPECT_TRUE(membership.wants_pause());
  membership.ready(0, 7);
  EXPECT_FALSE(membership.next()) << "worker 2 still trains";
  membership.ready(2, 7);
  EXPECT_FALSE(membership.wants_pause());
  EXPECT_FALSE(membership.next()) << "too few";
  membership.await(1);
  EXPECT_FALSE(membership.next());
  membership.ready(1, -1);
  const auto view = membership.next();
  ASSERT_TRUE(view);
  EXPECT_EQ(view->generation, 2);
  EXPECT_THAT(view->workers, ElementsAre(0, 2, 1)) << "who has no state is never chief";
}

TEST(MembershipTest, WhoHasComeFurthestIsChief) {
  Membership membership = group(3, 2);
  membership.next();
  membership.lose(0);
  membership.ready(1, 7);
  membership.ready(2, 8);
  EXPECT_THAT(membership.next()->workers, ElementsAre(2, 1));
}

TEST(MembershipTest, EnoughSurvivorsGoOnAndTakeTheNewcomerInLater) {
  Membership membership = group(3, 2);
  membership.next();
  membership.lose(0);
  membership.ready(1, 7);
  membership.ready(2, 7);
  ASSERT_TRUE(membership.next());
  membership.await(0);
  EXPECT_FALSE(membership.wants_pause()) << "nobody waits for a process that has not come yet";
  membership.ready(0, -1);
  EXPECT_TRUE(membership.wants_pause());
  membership.ready(1, 30);
  membership.ready(2, 30);
  const auto view = membership.next();
  EXPECT_EQ(view->generation, 3);
  EXPECT_THAT(view->workers, ElementsAre(1, 2, 0));
}

TEST(MembershipTest, WithoutLockstepALossStopsNobody) {
  Membership membership = group(3, 3, false);
  membership.next();
  membership.lose(1);
  EXPECT_FALSE(membership.wants_pause());
  EXPECT_FALSE(membership.next());
  membership.await(1);
  EXPECT_FALSE(membership.wants_pause());
  membership.ready(1, -1);
  EXPECT_TRUE(membership.wants_pause());
}

TEST(MembershipTest, MoreAndFewerCanBeWanted) {
  Membership membership = group(2, 1);
  membership.next();
  membership.want(3);
  EXPECT_FALSE(membership.wants_pause()) << "nobody new is there yet";
  membership.await(2);
  membership.ready(2, -1);
  EXPECT_TRUE(membership.wants_pause());
  membership.ready(0, 5);
  membership.ready(1, 5);
  EXPECT_THAT(membership.next()->workers, ElementsAre(0, 1, 2));
  membership.want(1);
  EXPECT_TRUE(membership.wants_pause());
  for (int worker = 0; worker < 3; ++worker) membership.ready(worker, 9);
  EXPECT_THAT(membership.next()->workers, ElementsAre(0));
  EXPECT_EQ(membership.present(), 1) << "the others were sent away";
}

TEST(MembershipTest, AServersLossStopsAlsoThoseThatAreNotInLockstep) {
  Membership membership = group(2, 2, false);
  membership.next();
  membership.need_new_view();
  EXPECT_TRUE(membership.wants_pause());
  membership.ready(0, 3);
  membership.ready(1, 4);
  EXPECT_THAT(membership.next()->workers, ElementsAre(0, 1)) << "the chief stays chief";
}

TEST(MembershipTest, ClosingTakesWhoeverIsLeft) {
  Membership membership = group(3, 3);
  membership.next();
  membership.lose(0);
  membership.ready(1, 7);
  membership.close();
  EXPECT_FALSE(membership.next()) << "worker 2 still trains";
  membership.ready(2, 7);
  const auto view = membership.next();
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->closing);
  EXPECT_THAT(view->workers, ElementsAre(1, 2));
}

TEST(MembershipTest, AWorkerThatLeavesItsViewEndsItForAll) {
  Membership membership = group(3, 3, false);
  membership.next();
  membership.ready(2, 4);
  EXPECT_TRUE(membership.wants_pause());
}

}  // namespace
}  // namespace cohort::cluster
