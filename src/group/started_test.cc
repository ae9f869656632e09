// Calls that were started: they go on by themselves, in their order, whatever their rank does
// meanwhile, and may be waited for until a deadline.

#include "group/group_test_support.h"

namespace cohort::group {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// More than rings and sockets hold. Sanitizers take their time.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kLongMessage = 400'000;
#else
constexpr std::size_t kLongMessage = 1'500'000;
#endif

class StartedCalls : public ::testing::TestWithParam<TestEngine> {
 protected:
  void run(int world, const GroupBody& body) { run_group(GetParam(), world, body); }
};

TEST_P(StartedCalls, AreMadeInTheirOrderAndWaitedForInAny) {
  run(3, [](Communicator& group) {
    std::vector<OwnArray> arrays;
    std::vector<std::shared_ptr<Pending>> started;
    for (int i = 0; i < 20; ++i) {
      arrays.push_back(floats(i % 2 == 0 ? 10 : 20'000, i));
      started.push_back(i % 3 == 0 ? group.start_broadcast({arrays.back()}, i % 2)
                                   : group.start_all_reduce({arrays.back()}, {}));
    }
    const OwnArray last = floats(5, 1);
    group.all_reduce({last}, {});
    EXPECT_TRUE(same(last, floats(5, 3)));
    for (int i = 19; i >= 0; --i) {
      const auto index = static_cast<std::size_t>(i);
      group.wait(*started[index]);
      group.wait(*started[index], soon());
      EXPECT_TRUE(
          same(arrays[index], floats(arrays[index].elements().size(), i % 3 == 0 ? i : 3 * i)));
    }
  });
}

TEST_P(StartedCalls, KeepWhatTheyWorkOn) {
  run(2, [](Communicator& group) {
    std::weak_ptr<const void> memory;
    std::shared_ptr<Pending> started;
    {
      const OwnArray array = floats(50'000, 1);
      memory = array.hold;
      started = group.start_all_reduce({array}, {});
    }
    group.wait(*started);
    EXPECT_TRUE(memory.expired());
  });
}

TEST_P(StartedCalls, ADeadlineIsATimeoutThatCollectivesOutlive) {
  std::atomic<bool> timed_out = false;
  run(2, [&](Communicator& group) {
    const OwnArray array = floats(10, 1);
    if (group.rank() == 0) {
      const auto started = group.start_all_reduce({array}, {});
      const Error error = failure_of([&] { group.wait(*started, Deadline::in_seconds(0.1)); });
      EXPECT_EQ(error.code(), ErrorCode::timeout);
      EXPECT_THAT(error.what(), HasSubstr("all_reduce (sum) of float32 [10] (call 1"));
      timed_out = true;
      timed_out.notify_all();
      group.wait(*started);
    } else {
      timed_out.wait(false);
      group.all_reduce({array}, {});
    }
    EXPECT_TRUE(same(array, floats(10, 2)));
  });
}

// A wait that gives up by itself says nothing about where its rank is afterwards.
TEST_P(StartedCalls, AWaitWithADeadlineIsNotTakenForStuck) {
  run(2, [](Communicator& group) {
    const OwnArray array = floats(10, 1), message = floats(3, 7);
    if (group.rank() == 0) {
      const auto started = group.start_all_reduce({array}, {});
      // Ten times the patience.
      EXPECT_EQ(failure_of([&] { group.wait(*started, Deadline::in_seconds(0.2)); }).code(),
                ErrorCode::timeout);
      group.send(message, 1);
      group.wait(*started);
    } else {
      group.receive(floats(3, 0), 0);
      group.all_reduce({array}, {});
    }
  });
}

// Also a rank that takes long for its own reasons is not stuck, however often it is told of.
TEST_P(StartedCalls, RanksThatComeLateAreWaitedFor) {
  run(3, [](Communicator& group) {
    for (int round = 0; round < 3; ++round) {
      if (group.rank() == round) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      group.all_reduce({floats(10, 1)}, {});
      if (group.rank() == 0) group.send(floats(1, 1), 1 + round % 2);
      if (group.rank() == 1 + round % 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        group.receive(floats(1, 1), 0);
      }
    }
  });
}

TEST_P(StartedCalls, AMessageThatIsNotThereAtItsDeadlineEndsTheGroup) {
  run(2, [](Communicator& group) {
    if (group.rank() == 0) {
      const auto started = group.start_receive(floats(10, 1), 1);
      const Error error = failure_of([&] { group.wait(*started, Deadline::in_seconds(0.1)); });
      EXPECT_EQ(error.code(), ErrorCode::timeout) << error.what();
      EXPECT_EQ(error.rank(), 1);
      EXPECT_THAT(error.what(), HasSubstr("rank 0 in recv from rank 1 of float32 [10]"));
      EXPECT_STREQ(failure_of([&] { group.wait(*started); }).what(), error.what());
    } else {
      EXPECT_EQ(failure_of([&] { group.barrier(); }).code(), ErrorCode::timeout);
    }
  });
}

// Both send first, and none could go on if a receive that was started did not.
TEST_P(StartedCalls, NeighboursExchangeLargeMessages) {
  run(3, [](Communicator& group) {
    const int next = (group.rank() + 1) % 3, before = (group.rank() + 2) % 3;
    for (int round = 0; round < 2; ++round) {
      const OwnArray taken = floats(kLongMessage, 0);
      const auto receiving = group.start_receive(taken, before);
      group.send(floats(kLongMessage, group.rank()), next);
      group.wait(*receiving);
      EXPECT_TRUE(same(taken, floats(kLongMessage, before)));
    }
  });
}

// Its receiver does not look at the message before it has come out of a collective, in which the
// sender is awaited, who is not there before the message is taken.
TEST_P(StartedCalls, MessagesMoveWhileTheirRankIsInACollective) {
  run(2, [](Communicator& group) {
    const OwnArray array = floats(kLongMessage, group.rank());
    if (group.rank() == 0) {
      const auto receiving = group.start_receive(array, 1);
      group.barrier();
      group.wait(*receiving);
      EXPECT_TRUE(same(array, floats(kLongMessage, 1)));
    } else {
      group.send(array, 0);
      group.barrier();
    }
  });
}

TEST_P(StartedCalls, MessagesOfOneDirectionKeepTheirOrder) {
  run(2, [](Communicator& group) {
    std::vector<OwnArray> arrays;
    std::vector<std::shared_ptr<Pending>> started;
    for (int i = 0; i < 30; ++i) {
      // Sizes come again, so that only the order tells them apart.
      arrays.push_back(
          floats(static_cast<std::size_t>(i % 3 * 40'000 + 1), group.rank() == 0 ? i : 0));
      started.push_back(group.rank() == 0 ? group.start_send(arrays.back(), 1)
                                          : group.start_receive(arrays.back(), 0));
    }
    for (std::size_t i = started.size(); i-- > 0;) {
      group.wait(*started[i]);
      const auto value = static_cast<double>(i);
      EXPECT_TRUE(same(arrays[i], floats(arrays[i].elements().size(), value))) << i;
    }
  });
}

TEST_P(StartedCalls, WrongOnesAreAnErrorWhenTheyAreWaitedFor) {
  run(2, [](Communicator& group) {
    const auto started = group.start_all_reduce({floats(group.rank() == 0 ? 4 : 5, 1)}, {});
    const Error error = failure_of([&] { group.wait(*started); });
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 0 calls all_reduce (sum) of float32 [4]"),
                                    HasSubstr("rank 1 calls all_reduce (sum) of float32 [5]")));
    EXPECT_STREQ(failure_of([&] { group.wait(*started); }).what(), error.what());
  });
}

TEST_P(StartedCalls, ThoseBehindAWrongOneFailWithItsReason) {
  run(2, [](Communicator& group) {
    const Error error = failure_of([&] {
      std::vector<std::shared_ptr<Pending>> started;
      for (int i = 0; i < 3; ++i) {
        started.push_back(group.start_all_reduce({floats(group.rank() == i ? 4 : 5, 1)}, {}));
      }
      group.wait(*started.back());
    });
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("call 1 of the group is not the same on all ranks"));
  });
}

// The collective is never made; its rank waits in the other call.
TEST_P(StartedCalls, ACircleThroughAStartedCallIsAnErrorOnBoth) {
  run(2, [](Communicator& group) {
    const auto started = group.start_receive(floats(4, 1), 1 - group.rank());
    const Error error = failure_of([&] {
      if (group.rank() == 0) group.barrier();
      group.wait(*started);
    });
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 0 in barrier"),
                                    HasSubstr("rank 1 in recv from rank 0 of float32 [4]")));
  });
}

TEST_P(StartedCalls, WhoLeavesBreaksOffWhatItStarted) {
  run(2, [](Communicator& group) {
    if (group.rank() == 0) {
      group.start_all_reduce({floats(100'000, 1)}, {});
      group.start_send(floats(100'000, 1), 1);
      group.start_receive(floats(100'000, 1), 1);
    } else {
      const Error error = failure_of([&] {
        while (true) group.all_reduce({floats(100'000, 1)}, {});
      });
      EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
      EXPECT_EQ(error.rank(), 0) << error.what();
    }
  });
}

// Started ones of every kind are under way while the rank makes all others.
TEST_P(StartedCalls, OtherCallsGoOnBesideThem) {
  run(3, [](Communicator& group) {
    const int next = (group.rank() + 1) % 3, before = (group.rank() + 2) % 3;
    const OwnArray sum = floats(50'000, 1), taken = floats(10, 0);
    const OwnArray given = floats(10, group.rank());
    const auto receiving = group.start_receive(taken, before);
    const auto reducing = group.start_all_reduce({sum}, {});
    group.barrier();
    const OwnArray shared(group.empty(ElementType::f32, {100}));
    const auto broadcasting = group.start_broadcast({given}, 1);
    const auto part = group.split(0, -group.rank());
    const OwnArray gathered[] = {floats(2, 9), floats(2, 9), floats(2, 9)};
    group.all_gather(floats(2, group.rank()), [&](auto) {
      return std::vector<Array>(std::begin(gathered), std::end(gathered));
    });
    EXPECT_TRUE(same(gathered[2], floats(2, 2)));
    const OwnArray other = floats(3, part->rank());
    part->all_reduce({other}, {});
    EXPECT_TRUE(same(other, floats(3, 3)));
    group.send(floats(10, group.rank() + 5), next);
    const OwnArray scattered = floats(1, 0);
    group.reduce_scatter(floats(3, 2), scattered, {});
    EXPECT_TRUE(same(scattered, floats(1, 6)));
    for (const auto& each : {receiving, broadcasting, reducing}) group.wait(*each);
    EXPECT_TRUE(same(sum, floats(50'000, 3)));
    EXPECT_TRUE(same(given, floats(10, 1)));
    EXPECT_TRUE(same(taken, floats(10, before + 5)));
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, StartedCalls, ::testing::ValuesIn(test_engines()), engine_name);

}  // namespace
}  // namespace cohort::group
