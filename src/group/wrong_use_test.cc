// Ranks that do not fit together: other calls, other shapes, ranks that leave, are killed or wait for
// each other. All of them must hear why, in the same words, and nobody may wait for ever.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "cluster/socket_store.h"
#include "group/group_test_support.h"

namespace cohort::group {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A call between two ranks that would be right if the other one made it too, and its words.
struct TestCall {
  std::string name;
  std::string words;
  GroupBody make;
};

int other_of(const Communicator& group) {
  return 1 - group.rank();
}

void gather_floats(Communicator& group, std::int64_t width) {
  group.all_gather(OwnArray(ElementType::f32, {2, width}), [&](std::span<const std::int64_t> rows) {
    return std::vector<Array>(rows.size(), OwnArray(ElementType::f32, {2, width}));
  });
}

/// Every operation once.
std::vector<TestCall> operations() {
  return {
      {"barrier", "barrier", [](Communicator& group) { group.barrier(); }},
      {"all_reduce", "all_reduce (sum) of float32 [4]",
       [](Communicator& group) { group.all_reduce({floats(4, 1)}, {}); }},
      {"broadcast", "broadcast from rank 0 of float32 [4]",
       [](Communicator& group) { group.broadcast({floats(4, 1)}, 0); }},
      {"all_gather", "all_gather of float32 [2, 3]",
       [](Communicator& group) { gather_floats(group, 3); }},
      {"reduce_scatter", "reduce_scatter (sum) of float32 [2]",
       [](Communicator& group) { group.reduce_scatter(floats(4, 1), floats(2, 0), {}); }},
      {"all_to_all", "all_to_all of float32 [4]",
       [](Communicator& group) { group.all_to_all(floats(4, 1), floats(4, 0)); }},
      {"split", "split", [](Communicator& group) { group.split(0, 0); }},
      {"empty", "empty of float32 [2, 3]",
       [](Communicator& group) {
         group.empty(ElementType::f32, {2, 3});
       }},
      {"send", "send to rank",
       [](Communicator& group) { group.send(floats(4, 1), other_of(group)); }},
      {"recv", "recv from rank",
       [](Communicator& group) { group.receive(floats(4, 1), other_of(group)); }},
  };
}

/// The same operations as above with something else about them.
std::vector<TestCall> variants() {
  return {
      {"all_reduce", "float32 [5]",
       [](Communicator& group) { group.all_reduce({floats(5, 1)}, {}); }},
      {"all_reduce", "float32 [4, 1]",
       [](Communicator& group) {
         group.all_reduce({OwnArray(ElementType::f32, {4, 1})}, {});
       }},
      {"all_reduce", "int32 [4]",
       [](Communicator& group) { group.all_reduce({array_of(ElementType::i32, 4)}, {}); }},
      {"all_reduce", "all_reduce (max)",
       [](Communicator& group) { group.all_reduce({floats(4, 1)}, {.how = Reduction::max}); }},
      {"all_reduce", "all_reduce (mean)",
       [](Communicator& group) { group.all_reduce({floats(4, 1)}, {.mean = true}); }},
      {"all_reduce", "of 2 tensors, the first float32 [2]",
       [](Communicator& group) {
         group.all_reduce({floats(2, 1), floats(2, 1)}, {});
       }},
      {"all_reduce", "float32 [100000]",
       [](Communicator& group) { group.all_reduce({floats(100'000, 1)}, {}); }},
      {"broadcast", "broadcast from rank 1",
       [](Communicator& group) { group.broadcast({floats(4, 1)}, 1); }},
      {"broadcast", "float32 [0]", [](Communicator& group) { group.broadcast({floats(0, 1)}, 0); }},
      {"all_gather", "float32 [2, 4]", [](Communicator& group) { gather_floats(group, 4); }},
      {"reduce_scatter", "float32 [3]",
       [](Communicator& group) { group.reduce_scatter(floats(6, 1), floats(3, 0), {}); }},
      {"all_to_all", "float32 [6]",
       [](Communicator& group) { group.all_to_all(floats(6, 1), floats(6, 0)); }},
      {"empty", "empty of float32 [3, 2]",
       [](Communicator& group) {
         group.empty(ElementType::f32, {3, 2});
       }},
  };
}

class GroupMisuse : public ::testing::TestWithParam<TestEngine> {
 protected:
  void run(int world, const GroupBody& body) { run_group(GetParam(), world, body); }

  /// Every rank makes its call, and then another. Returns what all of them have heard.
  Error failure_of_all(const std::vector<GroupBody>& by_rank) {
    const auto world = static_cast<int>(by_rank.size());
    std::vector<Error> heard(by_rank.size(), Error(ErrorCode::unsupported, ""));
    run(world, [&](Communicator& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      heard[rank] = failure_of([&] { by_rank[rank](group); });
      EXPECT_STREQ(failure_of([&] { group.barrier(); }).what(), heard[rank].what());
      EXPECT_STREQ(failure_of([&] { group.start_all_reduce({floats(1, 1)}, {}); }).what(),
                   heard[rank].what());
      EXPECT_STREQ(failure_of([&] { group.send(floats(1, 1), 1 - group.rank() % 2); }).what(),
                   heard[rank].what());
    });
    for (const Error& error : heard) {
      EXPECT_STREQ(error.what(), heard.front().what());
      EXPECT_EQ(error.code(), heard.front().code());
      EXPECT_EQ(error.rank(), heard.front().rank());
    }
    return heard.front();
  }

  void expect_named(const TestCall& first, const TestCall& second) {
    SCOPED_TRACE(first.words + " | " + second.words);
    const Error error = failure_of_all({first.make, second.make});
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 0"), HasSubstr(first.words)));
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 1"), HasSubstr(second.words)));
    EXPECT_TRUE(error.rank() == 0 || error.rank() == 1) << error.what();
  }
};

bool is_message(const TestCall& call) {
  return call.name == "send" || call.name == "recv";
}

/// Those that wait for each other: a send's receive is right, and so is what both call alike.
bool fit(const TestCall& first, const TestCall& second) {
  return is_message(first) ? is_message(second) && first.name != second.name
                           : first.name == second.name;
}

TEST_P(GroupMisuse, EveryPairOfOperationsIsAnErrorOnBoth) {
  for (const TestCall& first : operations()) {
    for (const TestCall& second : operations()) {
      if (!fit(first, second)) expect_named(first, second);
    }
  }
}

TEST_P(GroupMisuse, OtherShapesTypesReductionsAndRootsAreAnErrorOnBoth) {
  for (const TestCall& usual : operations()) {
    for (const TestCall& variant : variants()) {
      if (usual.name != variant.name) continue;
      expect_named(usual, variant);
      expect_named(variant, usual);
    }
  }
}

TEST_P(GroupMisuse, MessagesThatDoNotFitAreAnErrorOnBoth) {
  const TestCall send = {"send", "send to rank 1 of float32 [4]",
                         [](Communicator& group) { group.send(floats(4, 1), 1); }};
  const std::vector<std::pair<std::string, OwnArray>> wrong = {
      {"float32 [5]", floats(5, 0)},
      {"float32 [0]", floats(0, 0)},
      {"float32 [2, 2]", OwnArray(ElementType::f32, {2, 2})},
      {"int32 [4]", array_of(ElementType::i32, 4)},
      {"float32 [200000]", floats(200'000, 0)}};
  for (const auto& [words, array] : wrong) {
    expect_named(send, {"recv", "recv from rank 0 of " + words,
                        [&array = array](Communicator& group) { group.receive(array, 0); }});
    expect_named({"send", "send to rank 1 of " + words,
                  [&array = array](Communicator& group) { group.send(array, 1); }},
                 {"recv", "recv from rank 0 of float32 [4]",
                  [](Communicator& group) { group.receive(floats(4, 1), 0); }});
  }
}

// The third rank is in nobody's wrong call, and hears of it all the same.
TEST_P(GroupMisuse, ReachesRanksThatHaveDoneNothingWrong) {
  const auto reduce = [](Communicator& group) { group.all_reduce({floats(4, 1)}, {}); };
  const auto barrier = [](Communicator& group) { group.barrier(); };
  const auto receive = [](Communicator& group) { group.receive(floats(4, 1), 0); };
  const Error differs = failure_of_all({reduce, barrier, reduce});
  EXPECT_THAT(differs.what(), AllOf(HasSubstr("rank 0 calls all_reduce (sum) of float32 [4]"),
                                    HasSubstr("rank 1 calls barrier")));
  EXPECT_EQ(differs.rank(), 1);
  const Error circle = failure_of_all({reduce, receive, reduce});
  EXPECT_EQ(circle.code(), ErrorCode::invalid) << circle.what();
  EXPECT_EQ(circle.rank(), 1);
  EXPECT_THAT(circle.what(), AllOf(HasSubstr("rank 0 in all_reduce (sum) of float32 [4]"),
                                   HasSubstr("rank 1 in recv from rank 0 of float32 [4]")));
}

// 0 waits for 1, that one for 2, and that one for 0, while 3 is in a collective.
TEST_P(GroupMisuse, ACircleOfReceivesIsAnErrorOnAll) {
  const auto receive_from = [](int peer) {
    return [=](Communicator& group) { group.receive(floats(4, 1), peer); };
  };
  const Error error = failure_of_all({receive_from(1), receive_from(2), receive_from(0),
                                      [](Communicator& group) { group.barrier(); }});
  EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("rank 2 in recv from rank 0"));
}

TEST_P(GroupMisuse, ARankThatLeavesIsNamed) {
  for (const TestCall& call : operations()) {
    run(2, [&](Communicator& group) {
      group.barrier();
      if (group.rank() == 1) return;
      const Error error = failure_of([&] { call.make(group); });
      EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
      EXPECT_EQ(error.rank(), 1) << error.what();
      EXPECT_THAT(error.what(), AllOf(HasSubstr("ank 1"), HasSubstr("rank 0 in " + call.words)));
      EXPECT_STREQ(failure_of([&] { group.barrier(); }).what(), error.what());
    });
  }
}

// Its peer goes on without the group, and never comes again.
TEST_P(GroupMisuse, ARankThatLeavesInTheMiddleIsNamedOnAll) {
  run(4, [&](Communicator& group) {
    group.barrier();
    if (group.rank() == 2) return;
    const Error error = failure_of([&] {
      while (true) group.all_reduce({floats(50'000, 1)}, {});
    });
    EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
    EXPECT_EQ(error.rank(), 2) << error.what();
  });
}

// One of the others is in a call by then, one comes to it later.
TEST_P(GroupMisuse, ARankThatEndsTheGroupTellsAllWhy) {
  const auto start = Clock::now();
  const auto reduce = [](Communicator& group) { group.all_reduce({floats(50'000, 1)}, {}); };
  const auto reduce_late = [&](Communicator& group) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    reduce(group);
  };
  const auto end = [](Communicator& group) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const auto started = group.start_all_reduce({floats(50'000, 1)}, {});
    group.end(Error(ErrorCode::not_found, "there is no file of batches"));
    group.end(Error(ErrorCode::io, "what comes second"));
    group.wait(*started);
  };
  const Error error = failure_of_all({reduce, end, reduce_late});
  EXPECT_STREQ(error.what(), "rank 1 ended the group: there is no file of batches");
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_EQ(error.rank(), 1);
  EXPECT_LT(seconds_since(start), 60) << "half of what a call waits for";
}

TEST_P(GroupMisuse, ARankThatEndsTheGroupIsHeardByWhoWaitsForItsMessage) {
  const auto receive = [](Communicator& group) { group.receive(floats(4, 1), 1); };
  const auto end = [](Communicator& group) {
    group.end(Error(ErrorCode::diverged, "no number").about_rank(0));
    group.barrier();
  };
  const Error error = failure_of_all({receive, end});
  EXPECT_EQ(error.code(), ErrorCode::diverged) << error.what();
  EXPECT_EQ(error.rank(), 0) << "whom the reason names";
}

// It may find what the other had left for it, and hears of it in its next call.
TEST_P(GroupMisuse, ARankThatComesTooLateIsATimeoutOnAll) {
  MeetingPlace place = GetParam().place(2);
  const auto rank_main = [&](int rank) {
    CommunicatorOptions options = quick_options();
    options.timeout = std::chrono::milliseconds(rank == 0 ? 200 : 120'000);
    Communicator group(place.membership(rank), options);
    if (rank == 1) place.store().get("the other has given up", soon());
    const Error error = failure_of([&] {
      while (true) group.all_reduce({floats(4, 1)}, {});
    });
    EXPECT_EQ(error.code(), ErrorCode::timeout) << error.what();
    EXPECT_EQ(error.rank(), 1) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("rank 0 in all_reduce (sum) of float32 [4]"));
    if (rank == 0) place.store().set("the other has given up", "yes");
  };
  std::jthread other([&] { rank_main(1); });
  rank_main(0);
}

TEST_P(GroupMisuse, WhatMakesTheTensorsOfAGatherMayFail) {
  const auto gather = [](const Communicator::MakeParts& make) {
    return [=](Communicator& group) { group.all_gather(floats(4, 1), make); };
  };
  const auto right =
      gather([](auto rows) { return std::vector<Array>(rows.size(), floats(4, 0)); });
  const auto throws = gather([](auto) -> std::vector<Array> { throw std::bad_alloc(); });
  const auto wrong =
      gather([](auto rows) { return std::vector<Array>(rows.size(), floats(3, 0)); });
  // The other ranks may have all they need; they hear of it in the next call.
  for (const GroupBody& fails : std::vector<GroupBody>{throws, wrong}) {
    run(3, [&](Communicator& group) {
      const Error error = failure_of([&] {
        group.rank() == 1 ? fails(group) : right(group);
        while (true) group.barrier();
      });
      EXPECT_NE(error.code(), ErrorCode::peer_lost) << error.what();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, GroupMisuse, ::testing::ValuesIn(test_engines()), engine_name);

/// Ranks that are processes; `victim` is killed once it has told that it is in the group. Rank 0
/// serves the store, as in a real run.
void run_processes(const TestEngine& engine, int world, int victim, const GroupBody& body) {
  const cluster::Pass pass = cluster::Pass::draw();
  const std::string endpoint = pass.endpoint_of(pass.new_address("store"));
  std::fflush(nullptr);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < world; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(240);  // A rank that hangs fails its test instead of stopping all.
      std::optional<cluster::StoreServer> server;
      if (rank == 0) server.emplace(endpoint, pass).start();
      const auto connect = [&] {
        return std::make_unique<cluster::SocketStore>(endpoint, pass, soon(),
                                                      cluster::Member{.number = rank});
      };
      const auto store = connect();
      const transport::EngineOptions options{
          .name = "", .rank = rank, .world = world, .address = "127.0.0.1", .cores = 2};
      const std::vector<int> hosts(static_cast<std::size_t>(world), 0);
      {
        Communicator group(
            {.connect = connect,
             .engine = engine.factory(options, {.rank = rank, .hosts = hosts}, *store, soon()),
             .store_rank = 0},
            quick_options());
        group.barrier();
        if (rank == victim) ::raise(SIGKILL);
        body(group);
      }
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    pids.push_back(pid);
  }
  for (int rank = 0; rank < world; ++rank) {
    int status = -1;
    ::waitpid(pids[static_cast<std::size_t>(rank)], &status, 0);
    EXPECT_TRUE(status == 0 || rank == victim) << "rank " << rank << "; its report is above";
  }
}

class GroupDeath : public ::testing::TestWithParam<TestEngine> {};

TEST_P(GroupDeath, IsNamedInEveryOperation) {
  for (const TestCall& call : operations()) {
    run_processes(GetParam(), 2, 1, [&](Communicator& group) {
      const Error error = failure_of([&] { call.make(group); });
      EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
      EXPECT_EQ(error.rank(), 1) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("rank 0 in " + call.words));
    });
  }
}

TEST_P(GroupDeath, IsNamedOnAllOthers) {
  run_processes(GetParam(), 4, 1, [&](Communicator& group) {
    const Error error = failure_of([&] { group.all_reduce({floats(50'000, 1)}, {}); });
    EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
    EXPECT_EQ(error.rank(), 1) << error.what();
  });
}

// The board goes with rank 0. Only rank 1 waits for it; rank 2 waits for rank 1, and so misses that
// one when it leaves.
TEST_P(GroupDeath, OfTheRankThatServesTheStoreIsNamedOnAllOthers) {
  run_processes(GetParam(), 4, 0, [&](Communicator& group) {
    const Error error = failure_of([&] { group.receive(floats(4, 1), group.rank() - 1); });
    EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
    EXPECT_EQ(error.rank(), 0) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("rank 0"));
  });
}

// Rank 0 is gone as soon as it hears of it, and the board too: others have read the reason by then.
TEST_P(GroupDeath, IsNamedOnAllOthersAlsoWhereTheRankThatServesTheStoreEndsAtOnce) {
  run_processes(GetParam(), 4, 3, [&](Communicator& group) {
    const int rank = group.rank();
    const Error error = failure_of([&] { group.receive(floats(4, 1), rank == 0 ? 3 : rank - 1); });
    EXPECT_EQ(error.rank(), 3) << error.what();
    if (rank == 0) ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, GroupDeath,
                         ::testing::Values(TestEngine{"shm", transport::make_shm_engine},
                                           TestEngine{"gloo", transport::make_gloo_engine}),
                         engine_name);

}  // namespace
}  // namespace cohort::group
