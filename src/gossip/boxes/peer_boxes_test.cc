// Boxes in shared memory and remote ones keep the same promises.

#include "gossip/boxes/peer_boxes.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <mutex>
#include <set>

#include "gossip/boxes/boxes_test_support.h"
#include "gossip/boxes/remote_message.h"
#include "rpc/rpc.h"

namespace cohort::gossip {
namespace {

using ::testing::HasSubstr;

using Floats = std::vector<float>;

Parcel parcel(double weight, const Floats& floats) {
  return {weight, std::as_bytes(std::span(floats))};
}

float first_float(const Box::Taken& taken) {
  return *reinterpret_cast<const float*>(taken.message().data());
}

class EveryKindOfBoxes : public ::testing::TestWithParam<bool> {};

TEST_P(EveryKindOfBoxes, HandOverParcelsAndCountThem) {
  BoxesGroup group(GetParam(), 2, {.topology = Topology::ring, .message_bytes = 64});
  EXPECT_TRUE(group.of(0).empty(1));
  EXPECT_FALSE(group.of(1).take(0));
  ASSERT_TRUE(group.of(0).put(1, parcel(0.5, {1, 2, 3}), WhenFull::replace));
  std::optional<Box::Taken> taken;
  ASSERT_TRUE(eventually([&] { return (taken = group.of(1).take(0)).has_value(); }));
  EXPECT_EQ(taken->weight(), 0.5);
  EXPECT_EQ(taken->message().size(), 12U);
  EXPECT_EQ(first_float(*taken), 1);
  EXPECT_FALSE(group.of(0).take(1));
  EXPECT_TRUE(eventually([&] { return group.of(0).idle(); }));
  EXPECT_GE(group.of(0).traffic().sent, 12U);
  EXPECT_LE(group.of(0).traffic().sent, 100U);
  EXPECT_GE(group.of(1).traffic().received, 12U);
}

// However slowly the other side takes, parcels that travel one by one arrive in order, each once.
TEST_P(EveryKindOfBoxes, KeepTheOrderOfWhatTheyDoNotRefuse) {
  constexpr int kParcels = 200;
  BoxesGroup group(GetParam(), 2, {.topology = Topology::ring, .message_bytes = 64});
  BoxesGroup::run(2, [&](int rank) {
    if (rank == 0) {
      for (int i = 1; i <= kParcels; ++i) {
        const Floats content = {static_cast<float>(i)};
        ASSERT_TRUE(eventually([&] { return group.of(0).empty(1); }));
        ASSERT_TRUE(group.of(0).put(1, parcel(i, content), WhenFull::refuse));
      }
      EXPECT_TRUE(eventually([&] { return group.of(0).idle(); }));
    } else {
      for (int i = 1; i <= kParcels; ++i) {
        ASSERT_TRUE(eventually([&] {
          const auto taken = group.of(1).take(0);
          if (!taken) return false;
          EXPECT_EQ(first_float(*taken), static_cast<float>(i));
          return true;
        }));
      }
    }
  });
}

TEST_P(EveryKindOfBoxes, HandOutEveryClaimOnce) {
  constexpr int kWorld = 3;
  constexpr std::int64_t kSteps = 50;
  BoxesGroup group(
      GetParam(), kWorld,
      {.message_bytes = 64, .claims = {.work = {.parts = kWorld}, .end_step = kSteps}});
  std::mutex mutex;
  std::set<std::pair<std::int64_t, int>> claimed;
  BoxesGroup::run(kWorld, [&](int rank) {
    while (const auto claim = group.of(rank).claims().next()) {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(claimed.insert({claim->step, claim->part}).second);
      EXPECT_LT(claim->step, kSteps);
      EXPECT_LT(claim->part, kWorld);
    }
    EXPECT_FALSE(group.of(rank).claims().stopped());
  });
  EXPECT_EQ(claimed.size(), static_cast<std::size_t>(kSteps * kWorld));
}

TEST_P(EveryKindOfBoxes, StopForAllWhenOneSaysSo) {
  for (const int who : {0, 2}) {
    BoxesGroup group(GetParam(), 3, {.message_bytes = 64, .claims = {.end_step = 1'000'000}});
    EXPECT_TRUE(group.of(1).claims().next());
    group.of(who).claims().stop();
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_FALSE(group.of(rank).claims().next());
      EXPECT_TRUE(group.of(rank).claims().stopped()) << rank;
    }
  }
}

TEST_P(EveryKindOfBoxes, WorkForOneWorkerAlone) {
  BoxesGroup group(GetParam(), 1, {.message_bytes = 64, .claims = {.end_step = 2}});
  EXPECT_TRUE(group.of(0).claims().next());
  EXPECT_TRUE(group.of(0).claims().next());
  EXPECT_FALSE(group.of(0).claims().next());
  EXPECT_TRUE(group.of(0).idle());
  EXPECT_FALSE(group.of(0).attendance().lost_peer());
}

std::vector<std::pair<std::int64_t, int>> pieces(const cluster::WorkLeft& work) {
  std::vector<std::pair<std::int64_t, int>> all;
  for (const cluster::Claim& claim : work.again) all.emplace_back(claim.step, claim.part);
  return all;
}

TEST_P(EveryKindOfBoxes, KnowWhatIsLeftToDo) {
  using Pieces = std::vector<std::pair<std::int64_t, int>>;
  const cluster::WorkLeft work{.next = 7, .parts = 2, .again = {{1, 1}, {2, 0}}};
  BoxesGroup group(GetParam(), 3, {.message_bytes = 64, .claims = {work, 5}});
  EXPECT_EQ(pieces(group.of(0).claims().left()), (Pieces{{1, 1}, {2, 0}}));
  EXPECT_EQ(whole_steps(group.of(2).claims().left()), 1);
  const auto take = [&](int rank) {
    const auto claim = group.of(rank).claims().next();
    return claim ? std::pair(claim->step, claim->part) : std::pair<std::int64_t, int>(-1, -1);
  };
  EXPECT_EQ(take(1), (std::pair<std::int64_t, int>(1, 1)));
  EXPECT_EQ(take(2), (std::pair<std::int64_t, int>(2, 0)));
  group.of(2).claims().done();
  EXPECT_EQ(take(2), (std::pair<std::int64_t, int>(3, 1)));
  EXPECT_EQ(take(0), (std::pair<std::int64_t, int>(4, 0)));
  EXPECT_EQ(pieces(group.of(0).claims().left()), (Pieces{{1, 1}, {3, 1}, {4, 0}}));
  EXPECT_EQ(group.of(0).claims().left().next, 9);
  // Who asks another knows what that one said last.
  const cluster::WorkLeft told = group.of(2).claims().left();
  EXPECT_THAT(pieces(told), ::testing::IsSupersetOf(Pieces{{1, 1}, {3, 1}}));
  group.of(2).claims().done();
  EXPECT_THAT(pieces(group.of(2).claims().left()),
              ::testing::Not(::testing::Contains(std::pair<std::int64_t, int>(3, 1))));
  group.of(2).claims().finish();
  EXPECT_EQ(pieces(group.of(0).claims().left()), (Pieces{{1, 1}, {4, 0}}));
  group.of(0).claims().done();
  EXPECT_EQ(take(0), (std::pair<std::int64_t, int>(4, 1)));
  EXPECT_EQ(take(2).first, -1) << "all is handed out";
  group.of(0).claims().done();
  EXPECT_EQ(pieces(group.of(0).claims().left()), (Pieces{{1, 1}})) << "rank 1 never came back";
  EXPECT_EQ(group.of(0).claims().left().next, 10);
}

TEST_P(EveryKindOfBoxes, SkipAWorkerThatLeaves) {
  BoxesGroup group(GetParam(), 3, {.topology = Topology::all, .message_bytes = 64});
  EXPECT_FALSE(group.of(0).attendance().lost_peer());
  group.of(1).attendance().leave();
  EXPECT_TRUE(eventually([&] { return group.of(0).attendance().lost_peer() == 1; }));
  EXPECT_TRUE(group.of(0).attendance().lost(1));
  EXPECT_FALSE(group.of(0).attendance().lost(2));
  EXPECT_FALSE(group.of(0).put(1, parcel(1, {1}), WhenFull::replace));
  EXPECT_TRUE(group.of(0).put(2, parcel(1, {1}), WhenFull::replace));
}

INSTANTIATE_TEST_SUITE_P(PeerBoxes, EveryKindOfBoxes, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Shared" : "Remote"; });

TEST(ComeTogether, SaysHowManyCame) {
  BoxesGroup group(true, 2, {.message_bytes = 64});
  try {
    come_together(group.of(0), group.store,
                  {.key = "meet", .world = 2, .deadline = Deadline::in_seconds(0.01)}, [] {});
    FAIL() << "met nobody";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_THAT(error.what(), HasSubstr("only 1 of 2 workers"));
  }
}

TEST(RemoteBoxes, ALostPeerIsSkippedAndTheOthersGoOn) {
  BoxesGroup group(false, 3, {.topology = Topology::all, .message_bytes = 64});
  group.boxes[1].reset();
  EXPECT_TRUE(eventually([&] {
    group.of(0).put(1, parcel(1, {1}), WhenFull::replace);
    return group.of(0).attendance().lost_peer() == 1;
  }));
  EXPECT_FALSE(group.of(0).put(1, parcel(1, {1}), WhenFull::replace));
  ASSERT_TRUE(group.of(0).put(2, parcel(1, {7}), WhenFull::replace));
  EXPECT_TRUE(eventually([&] { return group.of(0).idle(); }));
  EXPECT_EQ(first_float(*group.of(2).take(0)), 7);
  EXPECT_NO_THROW(group.of(2).claims().next());
}

TEST(RemoteBoxes, SayThatTheOneWhoCountsIsGone) {
  BoxesGroup group(false, 2, {.message_bytes = 64, .claims = {.end_step = 5}});
  group.boxes[0].reset();
  try {
    group.of(1).claims().next();
    FAIL() << "got work from nobody";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    EXPECT_EQ(error.rank(), 0);
    EXPECT_THAT(error.what(), HasSubstr("hands out the work"));
  }
}

TEST(RemoteBoxes, RefuseCallsThatAreNotTheirs) {
  BoxesGroup group(false, 3, {.topology = Topology::ring, .message_bytes = 64});
  rpc::RpcClient client(group.store.get("gossip/address@worker-1", Deadline::in_seconds(60)),
                        group.store.pass(), member_of(0));
  const auto refused = [&](const rpc::MessageParts& parts) {
    try {
      client.call(parts, Deadline::in_seconds(60));
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::corrupt || error.code() == ErrorCode::invalid;
    }
  };
  const Floats large(100);
  const RemoteHeader of_stranger{.from = 1};
  const RemoteHeader wrong_magic{.magic = 1, .from = 0};
  const RemoteHeader good{.from = 0};
  EXPECT_TRUE(refused({bytes_of(of_stranger)}));
  EXPECT_TRUE(refused({bytes_of(wrong_magic)}));
  EXPECT_TRUE(refused({bytes_of(good).first(10)}));
  EXPECT_TRUE(refused({bytes_of(good), std::as_bytes(std::span(large))}));
  EXPECT_FALSE(refused({bytes_of(good), std::as_bytes(std::span(large)).first(8)}));
  EXPECT_EQ(group.of(1).take(0)->message().size(), 8U);
}

}  // namespace
}  // namespace cohort::gossip
