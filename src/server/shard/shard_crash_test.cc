// Shards whose process is killed, and that are taken up again from the memory that outlives it.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/deadline.h"
#include "server/server_group_test_support.h"

namespace cohort::server {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Consistency = ShardRules::Consistency;

class KilledShards : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, KilledShards, testing::ValuesIn(modes()),
                         [](const auto& test) { return test.param.name; });

TEST_P(KilledShards, GoOnAsIfNothingHadHappened) {
  for (const int servers : {1, 3}) {
    const ServerGroup quiet(GetParam(), servers);
    quiet.run();
    const auto expected = quiet.floats();
    int kills = 0;
    for (const std::string point : {"server.before-update", "server.in-update",
                                    "server.before-commit", "server.before-answer"}) {
      for (const int passing : {1, 3, 7, 16}) {
        SCOPED_TRACE(point + " " + std::to_string(passing));
        const ServerGroup group(GetParam(), servers);
        kills += run_and_die(group, point + "=kill@" + std::to_string(passing)) ? 1 : 0;
        group.reconcile();
        kills += run_and_die(group, point + "=kill@3") ? 1 : 0;
        group.reconcile();
        ASSERT_FALSE(run_and_die(group, ""));
        ASSERT_EQ(group.floats(), expected);
      }
    }
    EXPECT_GT(kills, 12);
  }
}

TEST_P(KilledShards, GoOnAfterKillsAtAnyTime) {
  const ServerGroup quiet(GetParam(), 2);
  quiet.run();
  const ServerGroup group(GetParam(), 2);
  Random random(11);
  int kills = 0;
  for (bool done = false; !done;) {
    const pid_t child = ::fork();
    if (child == 0) {
      group.run();
      ::_exit(0);
    }
    // Of no importance when this is: it must be right at any time.
    const auto end =
        Clock::now() + std::chrono::microseconds(random.below(kills < 40 ? 4000 : 1000000));
    int status = 0;
    pid_t ended = 0;
    while (ended == 0 && Clock::now() < end) ended = ::waitpid(child, &status, WNOHANG);
    if (ended == 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
    }
    done = WIFEXITED(status);
    kills += done ? 0 : 1;
    group.reconcile();
  }
  EXPECT_EQ(group.floats(), quiet.floats()) << kills << " kills";
}

TEST(ReconciledShards, InStepHaveAllMadeTheSameUpdates) {
  for (const Mode& mode : modes()) {
    if (mode.rules.consistency != Consistency::sync) continue;
    for (const int passing : {2, 3, 5, 8}) {
      SCOPED_TRACE(mode.name + " " + std::to_string(passing));
      const ServerGroup group(mode, 3);
      ASSERT_TRUE(run_and_die(group, "server.before-commit=kill@" + std::to_string(passing)));
      const ReconciledShards agreed = group.reconcile();
      ASSERT_TRUE(agreed.have_model);
      for (int server = 0; server < 3; ++server) {
        EXPECT_EQ(group.find(server)->record().version, agreed.version) << "server " << server;
      }
      EXPECT_EQ(group.reconcile().version, agreed.version) << "reconciling twice changes nothing";
    }
  }
}

TEST(ReconciledShards, AFirstModelThatNotAllGotIsNone) {
  const ServerGroup group(modes().front(), 3);
  EXPECT_FALSE(group.reconcile().have_model);
  ASSERT_FALSE(run_and_die(group, ""));
  EXPECT_EQ(group.reconcile().version, kUpdates);
  group.find(1)->clear();
  EXPECT_FALSE(group.reconcile().have_model);
  for (int server = 0; server < 3; ++server) EXPECT_FALSE(group.find(server));
}

TEST(ReconciledShards, RefuseWhatCannotHaveHappened) {
  const ServerGroup group(modes().front(), 2);
  ASSERT_FALSE(run_and_die(group, ""));
  auto memory = group.find(1);
  ShardRecord record = memory->record();
  record.version -= 2;
  memory->commit(record, nullptr);
  memory->commit(record, nullptr);
  EXPECT_THAT([&] { group.reconcile(); }, ThrowsMessage<Error>(HasSubstr("differ by one")));
}

TEST(ShardMemory, RefusesMemoryThatIsTooSmallOrAnothers) {
  const ShardShape shape{.dense = 100};
  const LastingMemory memory(ShardMemory::bytes_needed(shape, 1));
  EXPECT_THROW(ShardMemory({.dense = 100000}, 1, memory.bytes()), Error);
  ShardMemory mine(shape, 1, memory.bytes());
  EXPECT_FALSE(mine.has_model());
  const cluster::WorkLeft work{.next = 7, .parts = 2, .again = {{1, 1}}};
  mine.publish({.version = 5}, &work);
  EXPECT_THROW(ShardMemory({.dense = 99}, 1, memory.bytes()), Error);
  EXPECT_THROW(ShardMemory(shape, 0, memory.bytes()), Error);
  const auto found = ShardMemory::find(memory.bytes());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->shape().dense, 100U);
  EXPECT_EQ(found->record().version, 5U);
  EXPECT_EQ(found->work().next, 7);
  EXPECT_EQ(found->work().parts, 2);
  EXPECT_THAT(found->work().again, testing::ElementsAre(cluster::Claim{1, 1}));
}

TEST(ShardMemory, CountsAreWholeOverThoseThatAKilledServerHalfWrote) {
  const LastingMemory memory(ShardMemory::bytes_needed({.dense = 1}, 0));
  ShardRecord late;
  late.counts.count_staleness(7);
  ShardMemory killed({.dense = 1}, 0, memory.bytes());
  killed.publish({}, nullptr);
  killed.commit(late, nullptr);
  EXPECT_THAT(killed.record().counts.histogram(), testing::ElementsAre(testing::Pair(7, 1)));
  // The other record is written now; this is what it may look like in the middle of that.
  const_cast<ShardRecord&>(killed.record()).counts.staleness_max = 0;
  killed.commit({}, nullptr);

  auto next = ShardMemory::find(memory.bytes());
  ASSERT_TRUE(next);
  ShardRecord fresh;
  fresh.counts.count_staleness(1);
  next->commit(fresh, nullptr);
  EXPECT_THAT(next->record().counts.histogram(), testing::ElementsAre(testing::Pair(1, 1)));
}

TEST(PushCounts, BecomeOthersWhicheverHaveMorePlacesInUse) {
  cluster::PushCounts few, many;
  for (const std::uint64_t staleness : {0, 1, 1}) few.count_staleness(staleness);
  for (const std::uint64_t staleness : {0, 5, 129, 1000}) many.count_staleness(staleness);
  many.missing = many.duplicates = many.fingerprint = 3;
  cluster::PushCounts counts;
  for (const cluster::PushCounts* other : {&few, &many, &few}) {
    counts.become(*other);
    EXPECT_EQ(counts.histogram(), other->histogram());
    EXPECT_EQ(counts.staleness_max, other->staleness_max);
    EXPECT_EQ(counts.staleness_sum, other->staleness_sum);
    EXPECT_EQ(counts.missing + counts.duplicates + counts.fingerprint,
              other->missing + other->duplicates + other->fingerprint);
  }
}

}  // namespace
}  // namespace cohort::server
