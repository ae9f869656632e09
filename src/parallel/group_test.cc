// The calls of a group on tensors. What the ranks do with each other's memory is tested by group_test;
// here is what tensors add: types, shapes, layouts, bytes, started calls, parts of a group.

#include <array>

#include "parallel/parallel_test_support.h"

namespace cohort::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr torch::ScalarType kTypes[] = {torch::kFloat32, torch::kFloat64, torch::kBFloat16,
                                        torch::kInt32,   torch::kInt64,   torch::kUInt8,
                                        torch::kBool};

TEST(Group, KnowsItsPlace) {
  run_ranks("composed", 4, [](const Group& group) {
    EXPECT_EQ(group.world(), 4);
    EXPECT_EQ(group.hosts(), 2);
    EXPECT_EQ(group.host_of(3), 1);
    EXPECT_EQ(group.local_world(), 2);
    EXPECT_EQ(group.local_rank(), group.rank() % 2);
    EXPECT_EQ(group.engine(), "shm+gloo");
    EXPECT_EQ(error_of([&] { group.host_of(4); }).code(), ErrorCode::invalid);
  });
}

TEST(Group, ReducesTensorsOfEveryTypeAndShape) {
  for (const int world : {1, 3}) {
    run_ranks(world, [world](const Group& group) {
      for (const torch::ScalarType type : kTypes) {
        for (const auto& shape : {std::vector<std::int64_t>{}, {0}, {5}, {3, 7}}) {
          const torch::Tensor one = torch::ones(shape, type);
          const torch::Tensor sum = one.clone();
          group.all_reduce(sum);
          EXPECT_TRUE(torch::equal(sum, type == torch::kBool ? one : one * world)) << type;
          const torch::Tensor largest = (one * (group.rank() == 0 ? 1 : 0)).to(type);
          group.all_reduce(largest, Reduce::max);
          EXPECT_TRUE(torch::equal(largest, one)) << type;
        }
      }
      const std::vector<torch::Tensor> list = {torch::full({2}, group.rank() + 1.0F),
                                               torch::full({3, 1}, 2.0F)};
      group.all_reduce(list, Reduce::product);
      EXPECT_EQ(list[0][1].item<float>(), world == 1 ? 1 : 6);
      EXPECT_EQ(list[1][2][0].item<float>(), world == 1 ? 2 : 8);
      const torch::Tensor mean = torch::full({3}, static_cast<double>(group.rank()));
      group.all_reduce(mean, Reduce::mean);
      EXPECT_EQ(mean[0].item<double>(), (world - 1) / 2.0);
    });
  }
}

TEST(Group, MovesTensors) {
  run_ranks(3, [](const Group& group) {
    const int rank = group.rank();
    const torch::Tensor shared = torch::full({4}, static_cast<float>(rank));
    group.broadcast(shared, 2);
    EXPECT_TRUE(torch::equal(shared, torch::full({4}, 2.0F)));
    group.broadcast({shared, torch::full({1}, static_cast<float>(rank))});

    const auto gathered = group.all_gather(torch::full({rank, 2}, rank, torch::kInt64));
    for (int other = 0; other < 3; ++other) {
      EXPECT_TRUE(torch::equal(gathered[static_cast<std::size_t>(other)],
                               torch::full({other, 2}, other, torch::kInt64)));
    }
    EXPECT_EQ(group.all_gather(torch::tensor(rank))[1].item<int>(), 1);

    const torch::Tensor columns = torch::arange(12, torch::kFloat32).view({2, 6}).t();
    ASSERT_FALSE(columns.is_contiguous()) << "what is only read is copied";
    const torch::Tensor part = group.reduce_scatter(columns);
    EXPECT_TRUE(torch::equal(part, 3 * columns.slice(0, 2 * rank, 2 * rank + 2)));
    const torch::Tensor taken = group.all_to_all(columns + 100 * rank);
    for (int other = 0; other < 3; ++other) {
      EXPECT_TRUE(torch::equal(taken.slice(0, 2 * other, 2 * other + 2),
                               columns.slice(0, 2 * rank, 2 * rank + 2) + 100 * other));
    }
    group.barrier();
  });
}

TEST(Group, SendsAndReceives) {
  run_ranks(2, [](const Group& group) {
    const torch::Tensor mine = torch::full({3}, group.rank() + 1.0F);
    torch::Tensor theirs = torch::zeros({3});
    if (group.rank() == 0) {
      group.send(mine.expand({2, 3}).t().slice(1, 0, 1).squeeze(1), 1);
      group.recv(theirs, 1);
    } else {
      group.recv(theirs, 0);
      group.send(mine, 0);
    }
    EXPECT_TRUE(torch::equal(theirs, torch::full({3}, 2.0F - group.rank())));
    Work sent = group.send(mine * 5, 1 - group.rank(), async);
    Work received = group.recv(theirs, 1 - group.rank(), async);
    received.wait();
    sent.wait(std::chrono::minutes(1));
    EXPECT_TRUE(torch::equal(theirs, torch::full({3}, 10.0F - 5 * group.rank())));
  });
}

TEST(Group, SendsBytes) {
  run_ranks(3, [](const Group& group) {
    const std::string own(static_cast<std::size_t>(group.rank()) * 70000, 'a' + group.rank());
    const auto all = group.all_gather(own);
    EXPECT_THAT(all, ElementsAre("", std::string(70000, 'b'), std::string(140000, 'c')));
    EXPECT_EQ(group.broadcast(own, 1), std::string(70000, 'b'));
    EXPECT_EQ(group.broadcast(std::string(), 0), "");
  });
}

TEST(Group, CallsGoOnWhileTheProgramDoes) {
  run_ranks(2, [](const Group& group) {
    const torch::Tensor one = torch::ones({1000});
    const torch::Tensor two = torch::ones({10}, torch::kInt32);
    Work first = group.all_reduce(one, async);
    Work second = group.all_reduce({two}, Reduce::max, async);
    Work third = group.broadcast(two, 0, async);
    third.wait();
    first.wait();
    second.wait();
    EXPECT_TRUE(torch::equal(one, torch::full({1000}, 2.0F)));
  });
}

TEST(Group, AWaitWithADeadlineEndsAndCanBeMadeAgain) {
  run_ranks(2, [](const Group& group) {
    const torch::Tensor tensor = torch::ones({4});
    if (group.rank() == 0) {
      Work work = group.all_reduce(tensor, async);
      EXPECT_EQ(error_of([&] { work.wait(std::chrono::milliseconds(1)); }).code(),
                ErrorCode::timeout);
      group.send(torch::ones({1}), 1);  // Only now does the other one come.
      work.wait();
    } else {
      const torch::Tensor go = torch::zeros({1});
      group.recv(go, 0);
      group.all_reduce(tensor);
    }
    EXPECT_TRUE(torch::equal(tensor, torch::full({4}, 2.0F)));
  });
}

TEST(Group, TheLongestWaitIsLong) {
  for (const char* engine : {"shm", "gloo", "inproc"}) {
    run_ranks(engine, 2, [](const Group& group) {
      const torch::Tensor tensor = torch::ones({4});
      if (group.rank() == 0) {
        Work received = group.recv(tensor, 1, async);
        received.wait(std::chrono::milliseconds::max());
        Work summed = group.all_reduce(tensor, async);
        summed.wait(std::chrono::milliseconds::max());
        EXPECT_EQ(error_of([&] {
                    Work late = group.recv(tensor, 1, async);
                    late.wait(std::chrono::milliseconds::min());
                  }).code(),
                  ErrorCode::timeout);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        group.send(tensor * 5, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        group.all_reduce(tensor);
        error_of([&] { group.barrier(); });
      }
      EXPECT_TRUE(torch::equal(tensor, torch::full({4}, 6.0F)));
    });
  }
}

TEST(Group, OtherCallsGoOnBesideAStartedOne) {
  run_ranks(2, [](const Group& group) {
    const int other = 1 - group.rank();
    const torch::Tensor sum = torch::ones({100'000});
    const torch::Tensor taken = torch::zeros({3});
    Work receiving = group.recv(taken, other, async);
    Work reducing = group.all_reduce(sum, async);
    group.barrier();
    EXPECT_THAT(group.all_gather(std::string("of all")), ElementsAre("of all", "of all"));
    const torch::Tensor memory = group.empty({5});
    Work broadcasting = group.broadcast(memory.fill_(group.rank() + 1), 1, async);
    const Group part = group.split(0, -group.rank());
    const torch::Tensor own = torch::full({2}, part.rank() + 1.0F);
    part.all_reduce(own, Reduce::max);
    EXPECT_TRUE(torch::equal(own, torch::full({2}, 2.0F)));
    group.send(torch::full({3}, group.rank()).to(torch::kFloat32), other);
    receiving.wait();
    broadcasting.wait();
    reducing.wait();
    EXPECT_TRUE(torch::equal(sum, torch::full({100'000}, 2.0F)));
    EXPECT_TRUE(torch::equal(memory, torch::full({5}, 2.0F)));
    EXPECT_TRUE(torch::equal(taken, torch::full({3}, static_cast<float>(other))));
  });
}

// It is all that is left of its group then.
TEST(Group, GoesOnAsLongAsACallThatItStarted) {
  for (const char* engine : {"shm", "gloo", "inproc"}) {
    run_ranks(engine, 2, [](const Group& group) {
      const torch::Tensor sum = torch::ones({100'000}), sent = torch::ones({3}), taken = sent * 0;
      std::optional<Group> part = group.split(0);
      std::vector<Work> works = {part->all_reduce(sum, async),
                                 part->send(sent, 1 - group.rank(), async),
                                 part->recv(taken, 1 - group.rank(), async)};
      part.reset();
      for (Work& work : works) work.wait();
      EXPECT_TRUE(torch::equal(sum, torch::full({100'000}, 2.0F)));
      EXPECT_TRUE(torch::equal(taken, sent));
      const Group last = group.split(0);
      Work alone = last.all_reduce(sum, async);
      group.barrier();
    });
  }
}

TEST(Group, PartsAreGroups) {
  run_ranks(5, [](const Group& group) {
    if (group.rank() == 4) return group.split_without_me();
    const Group part = group.split(group.rank() % 2, -group.rank());
    EXPECT_EQ(part.world(), 2);
    EXPECT_EQ(part.rank(), group.rank() < 2 ? 1 : 0);
    const torch::Tensor sum = torch::full({1}, group.rank());
    part.all_reduce(sum);
    EXPECT_EQ(sum.item<int>(), group.rank() % 2 == 0 ? 2 : 4);
  });
}

TEST(Group, MemoryOfTheGroupIsATensorLikeAnyOther) {
  for (const char* engine : {"shm", "gloo", "inproc"}) {
    run_ranks(engine, 2, [](const Group& group) {
      torch::Tensor kept;
      {
        const torch::Tensor tensor = group.empty({1000, 10}, torch::kFloat64);
        EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{1000, 10}));
        EXPECT_EQ(tensor.scalar_type(), torch::kFloat64);
        tensor.fill_(group.rank() + 1);
        group.all_reduce(tensor);
        EXPECT_TRUE(torch::equal(tensor, torch::full({1000, 10}, 3.0, torch::kFloat64)));
        group.all_reduce(tensor[5], Reduce::mean);
        kept = tensor[7];
      }
      group.all_reduce(kept);
      EXPECT_EQ(kept[2].item<double>(), 6);
      EXPECT_EQ(group.empty({0}).numel(), 0);
    });
  }
}

TEST(Group, ACallThatIsWrongByItselfIsRefusedAndTheGroupGoesOn) {
  run_ranks(2, [](const Group& group) {
    const torch::Tensor matrix = torch::ones({4, 6});
    const auto refused = [](auto&& call) {
      const Error error = error_of(call);
      EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
      return std::string(error.what());
    };
    EXPECT_THAT(refused([&] { group.all_reduce(matrix.t()); }), HasSubstr("not contiguous"));
    EXPECT_THAT(refused([&] { group.broadcast(torch::ones({2}, torch::kFloat16)); }),
                HasSubstr("of Half: only float32"));
    EXPECT_THAT(refused([&] { group.all_reduce(torch::Tensor()); }), HasSubstr("undefined"));
    EXPECT_THAT(refused([&] { group.all_reduce(matrix.to_sparse()); }), HasSubstr("sparse"));
    refused([&] { group.all_reduce(torch::ones({2}, torch::kInt64), Reduce::mean); });
    refused([&] { group.all_reduce({matrix, torch::ones({1}, torch::kFloat64)}); });
    refused([&] { group.reduce_scatter(torch::ones({3})); });
    refused([&] { group.all_to_all(torch::ones({})); });
    refused([&] { group.send(matrix, 5); });
    refused([&] { group.send(matrix, group.rank()); });
    refused([&] { group.broadcast(matrix, -1); });
    refused([&] { group.empty({2}, torch::kComplexFloat); });
    group.all_reduce(matrix);
    EXPECT_EQ(matrix[3][5].item<float>(), 2);
  });
}

TEST(Group, CallsThatDoNotBelongTogetherAreNamedOnAllRanks) {
  run_ranks(3, [](const Group& group) {
    const Error error = error_of([&] {
      if (group.rank() == 1) group.all_reduce(torch::ones({2, 3}));
      group.all_reduce(torch::ones({3, 2}));
    });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), HasSubstr("[2, 3]"));
    EXPECT_THAT(error_of([&] { group.barrier(); }).what(), HasSubstr("[2, 3]")) << "it is over";
  });
}

}  // namespace
}  // namespace cohort::parallel
