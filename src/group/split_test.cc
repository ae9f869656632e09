// Groups made of parts of a group: who is in which, in which order, and what their loss means.

#include "group/group_test_support.h"

namespace cohort::group {
namespace {

using ::testing::HasSubstr;

class Splits : public ::testing::TestWithParam<TestEngine> {
 protected:
  void run(int world, const GroupBody& body) { run_group(GetParam(), world, body); }
};

/// The sum over the ranks of what each gives.
int sum_of(Communicator& group, int own) {
  OwnArray number = array_of(ElementType::i32, 1);
  number.fill([=](std::size_t) { return own; });
  group.all_reduce({number}, {});
  return *reinterpret_cast<const std::int32_t*>(number.bytes.data());
}

TEST_P(Splits, FollowColorsKeysAndRanks) {
  run(5, [](Communicator& group) {
    const int rank = group.rank();
    const auto parity = group.split(rank % 2, 0);
    EXPECT_EQ(parity->world(), rank % 2 == 0 ? 3 : 2);
    EXPECT_EQ(parity->rank(), rank / 2);
    const auto reversed = group.split(-7, -rank);
    EXPECT_EQ(reversed->world(), 5);
    EXPECT_EQ(reversed->rank(), 4 - rank);
    const auto alone = group.split(rank, 0);
    EXPECT_EQ(alone->world(), 1);
    // All of them at once.
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(sum_of(*parity, rank), rank % 2 == 0 ? 6 : 4);
      EXPECT_EQ(sum_of(*reversed, rank), 10);
      EXPECT_EQ(sum_of(*alone, rank), rank);
      EXPECT_EQ(sum_of(group, rank), 10);
    }
    if (reversed->rank() == 0) reversed->send(floats(3, 9), 4);
    if (reversed->rank() == 4) reversed->receive(floats(3, 0), 0);
  });
}

TEST_P(Splits, LeaveOutWhoGivesNoColor) {
  run(3, [](Communicator& group) {
    const auto part = group.split(group.rank() == 1 ? std::nullopt : std::optional(0), 0);
    EXPECT_EQ(part == nullptr, group.rank() == 1);
    if (part) {
      EXPECT_EQ(sum_of(*part, group.rank()), 2);
    }
    group.barrier();
  });
}

TEST_P(Splits, CanBeSplitAndOutliveTheWhole) {
  MeetingPlace place = GetParam().place(4);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      auto whole = std::make_shared<Communicator>(place.membership(rank), quick_options());
      auto half = whole->split(rank / 2, 0);
      whole.reset();
      const auto alone = half->split(half->rank(), 0);
      EXPECT_EQ(sum_of(*half, rank), rank < 2 ? 1 : 5);
      half.reset();
      EXPECT_EQ(sum_of(*alone, rank), rank);
    });
  }
}

// What goes wrong in a part is known there, by the ranks of the part, and only there.
TEST_P(Splits, FailApart) {
  run(4, [](Communicator& group) {
    const auto half = group.split(group.rank() / 2, -group.rank());
    if (group.rank() >= 2) {
      const Error error =
          failure_of([&] { half->rank() == 0 ? half->barrier() : half->receive(floats(1, 1), 0); });
      EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("rank 1 in recv from rank 0"));
    } else {
      EXPECT_EQ(sum_of(*half, group.rank()), 1);
    }
    EXPECT_EQ(sum_of(group, group.rank()), 6);
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, Splits, ::testing::ValuesIn(test_engines()), engine_name);

// What an engine stands on is kept by whoever connects to the store.
TEST(Membership, EndsWithTheEngine) {
  for (const bool part_is_last : {false, true}) {
    MeetingPlace place({}, {0});
    std::weak_ptr<transport::Engine> engine;
    bool engine_was_gone = false;
    std::shared_ptr<Communicator> group;
    {
      Membership membership = place.membership(0);
      engine = membership.engine;
      const std::shared_ptr<void> ground(nullptr,
                                         [&](void*) { engine_was_gone = engine.expired(); });
      membership.connect = [ground, connect = membership.connect] { return connect(); };
      group = std::make_shared<Communicator>(std::move(membership), quick_options());
    }
    if (part_is_last) group = group->split(0, 0);
    group.reset();
    EXPECT_TRUE(engine_was_gone);
  }
}

}  // namespace
}  // namespace cohort::group
