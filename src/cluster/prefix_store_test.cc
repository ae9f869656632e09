// Proves of a part of a store that groups do not see each other's keys, that marks name workers and
// not ranks, and that a wait which nobody will end is given up.

#include <gtest/gtest.h>

#include "cluster/cluster_test_support.h"
#include "cluster/store.h"

namespace cohort::cluster {
namespace {

// A rank of a group is another worker of the run, also in a group of that group.
TEST(PrefixStoreTest, MarksAreOfTheWorkerAndNotOfItsRank) {
  MemoryStore all;
  PrefixStore group(all, "group/2/", nullptr, {4, 0, 7});
  PrefixStore part(group, "part/", nullptr, {2, 1});
  PrefixStore same(part, "same/");
  EXPECT_EQ(group.mark_of_rank(0), "@worker-4");
  EXPECT_EQ(part.mark_of_rank(0), "@worker-7");
  EXPECT_EQ(same.mark_of_rank(1), "@worker-0");
}

TEST(PrefixStoreTest, EachPartHasASecretOfItsOwn) {
  MemoryStore all;
  PrefixStore one(all, "group/1/");
  PrefixStore same(all, "group/1/");
  PrefixStore next(all, "group/2/");
  PrefixStore whole(all, "");
  const auto mac_of = [](Store& store) { return store.pass().secret.mac({}); };
  EXPECT_EQ(one.pass().folder, all.pass().folder);
  EXPECT_EQ(mac_of(one), mac_of(same));
  EXPECT_NE(mac_of(one), mac_of(all));
  EXPECT_NE(mac_of(one), mac_of(next));
  EXPECT_EQ(mac_of(whole), mac_of(all));
}

TEST(PrefixStoreTest, KeepsGroupsApart) {
  MemoryStore all;
  PrefixStore first(all, "1/");
  PrefixStore second(all, "2/");
  first.set("key", "a");
  second.set("key", "b");
  EXPECT_EQ(first.get("key", Deadline::in(std::chrono::seconds(1))), "a");
  EXPECT_EQ(second.get("key", Deadline::in(std::chrono::seconds(1))), "b");
  EXPECT_EQ(second.add("count", 2), 2);
  EXPECT_EQ(first.add("count", 3), 3);
  EXPECT_EQ(all.find("1/key"), "a");
}

TEST(PrefixStoreTest, AnAbandonedWaitEndsBeforeItsDeadline) {
  MemoryStore all;
  PrefixStore group(all, "1/", [] { return true; });
  try {
    group.get("never", Deadline::in(std::chrono::hours(1)));
    FAIL() << "there is no such key";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
  }
  PrefixStore patient(all, "1/", [] { return false; });
  EXPECT_THROW(patient.get("never", Deadline::in(std::chrono::milliseconds(60))), Error);
}

}  // namespace
}  // namespace cohort::cluster
