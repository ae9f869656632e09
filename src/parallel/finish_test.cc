// Ranks that run out of batches at different times, over several epochs, with several modules, and what
// happens where nobody has a row.

#include "parallel/parallel_test_support.h"

namespace cohort::parallel {
namespace {

using ::testing::HasSubstr;

/// Rank r's gradient of batch b: `values` moves by its mean over those that take part.
struct Walker : torch::nn::Module {
  explicit Walker(std::int64_t size = 8)
      : values(register_parameter("values", torch::zeros({size}))) {}

  void pull(int rank, int batch) { ((values * (10 * batch + rank + 1)).sum()).backward(); }

  torch::Tensor values;
};

torch::optim::SGD plain_sgd(const torch::nn::Module& module) {
  return torch::optim::SGD(module.parameters(), 0.01);
}

/// What `values` is where batch b was made by the ranks that had so many.
double walked(const std::vector<std::vector<int>>& batches_of_epochs) {
  double value = 0;
  for (const std::vector<int>& batches : batches_of_epochs) {
    for (int batch = 0; batch < *std::ranges::max_element(batches); ++batch) {
      double sum = 0, active = 0;
      for (std::size_t rank = 0; rank < batches.size(); ++rank) {
        if (batch >= batches[rank]) continue;
        sum += 10 * batch + static_cast<double>(rank) + 1;
        ++active;
      }
      value -= 0.01 * sum / active;
    }
  }
  return value;
}

/// Each epoch ends with finish(); the ranks take turns in who has fewer batches.
torch::Tensor walk(const Group& group, const std::vector<std::vector<int>>& epochs, bool follow) {
  Walker walker;
  DataParallel parallel(group, walker);
  auto optimizer = plain_sgd(walker);
  for (const std::vector<int>& batches : epochs) {
    for (int batch = 0; batch < batches[static_cast<std::size_t>(group.rank())]; ++batch) {
      optimizer.zero_grad();
      walker.pull(group.rank(), batch);
      parallel.wait();
      optimizer.step();
    }
    parallel.finish(follow ? std::function<void()>([&] { optimizer.step(); })
                           : std::function<void()>());
  }
  return walker.values.detach().clone();
}

TEST(Finish, EveryEpochEndsWithTheModelOfWhoeverWentFurthestInIt) {
  const std::vector<std::vector<int>> epochs = {{3, 5}, {4, 3}, {2, 2}, {1, 4}};
  for (const bool follow : {true, false}) {
    const auto ranks = results_of_ranks<torch::Tensor>(
        2, [&](const Group& group) { return walk(group, epochs, follow); });
    EXPECT_NEAR(ranks[0][3].item<double>(), walked(epochs), 1e-5) << "follow " << follow;
    EXPECT_TRUE(torch::equal(ranks[0], ranks[1])) << "follow " << follow;
  }
}

TEST(Finish, WeighsRowsToo) {
  run_ranks(2, [](const Group& group) {
    Walker walker;
    DataParallel parallel(group, walker);
    auto optimizer = plain_sgd(walker);
    for (int batch = 0; batch < (group.rank() == 0 ? 2 : 1); ++batch) {
      optimizer.zero_grad();
      walker.pull(group.rank(), batch);
      parallel.wait(group.rank() == 0 ? 3 : 1);
      optimizer.step();
    }
    parallel.finish([&] { optimizer.step(); });
    // Batch 0: (3 x 1 + 1 x 2) / 4; batch 1 is rank 0's alone.
    EXPECT_NEAR(walker.values[0].item<double>(), -0.01 * (1.25 + 11), 1e-6);
  });
}

// A parameter that nobody uses in a step keeps no gradient on the rank that has run out either: the
// momentum of its optimizer would move it there alone.
TEST(Finish, LeavesNoOldGradientsWhereTheOthersDropTheirs) {
  const auto ranks = results_of_ranks<torch::Tensor>(2, [](const Group& group) {
    Walker walker;
    const torch::Tensor seldom = walker.register_parameter("seldom", torch::ones({4}));
    DataParallel parallel(group, walker);
    torch::optim::SGD optimizer(walker.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (int batch = 0; batch < (group.rank() == 0 ? 4 : 1); ++batch) {
      for (const torch::Tensor& one : walker.parameters()) {
        torch::Tensor(one).mutable_grad() = torch::Tensor();
      }
      torch::Tensor loss = walker.values.sum();
      if (batch == 0) loss = loss + seldom.sum();
      loss.backward();
      parallel.wait();
      optimizer.step();
    }
    parallel.finish([&] { optimizer.step(); });
    return torch::cat({walker.values, seldom}).detach().clone();
  });
  EXPECT_TRUE(torch::equal(ranks[0], ranks[1]));
  EXPECT_NEAR(ranks[1][8].item<double>(), 0.9, 1e-6) << "moved by one step";
}

/// Two modules of different sizes, one step of each per batch.
TEST(Finish, GoesAlongWithWhicheverModuleTheOthersWaitFor) {
  const std::vector<std::vector<int>> epochs = {{1, 3, 2}, {2, 1, 2}};
  const auto ranks = results_of_ranks<torch::Tensor>(3, [&](const Group& group) {
    Walker generator(8), judge(3);
    judge.register_parameter("more", torch::ones({2}));
    DataParallel for_generator(group, generator), for_judge(group, judge);
    auto step_generator = plain_sgd(generator), step_judge = plain_sgd(judge);
    for (const std::vector<int>& batches : epochs) {
      for (int batch = 0; batch < batches[static_cast<std::size_t>(group.rank())]; ++batch) {
        generator.zero_grad();
        generator.pull(group.rank(), batch);
        for_generator.wait();
        step_generator.step();
        judge.zero_grad();
        judge.pull(group.rank(), batch);
        for_judge.wait();
        step_judge.step();
      }
      DataParallel::finish_all({&for_generator, &for_judge}, [&](std::size_t module) {
        (module == 0 ? step_generator : step_judge).step();
      });
    }
    return torch::cat({generator.values, judge.values}).detach().clone();
  });
  for (const torch::Tensor& one : ranks) {
    EXPECT_TRUE(torch::equal(one, ranks[0]));
    EXPECT_NEAR(one[0].item<double>(), walked(epochs), 1e-5);
    EXPECT_NEAR(one[10].item<double>(), walked(epochs), 1e-5);
  }
}

TEST(Finish, OfOneModuleOfTwoIsToldWhereTheOthersWaitForTheOtherOne) {
  run_ranks(2, [](const Group& group) {
    Walker one(8), other(3);
    other.register_parameter("more", torch::ones({2}));
    DataParallel for_one(group, one), for_other(group, other);
    const Error error = error_of([&] { group.rank() == 0 ? for_one.finish() : for_other.wait(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), HasSubstr("finish_all() with all modules"));
  });
  run_ranks(1, [](const Group&) {
    EXPECT_EQ(error_of([] { DataParallel::finish_all({}); }).code(), ErrorCode::invalid);
  });
}

TEST(DataParallelBuffers, StayAsTheyAreWhereNobodyHasARow) {
  run_ranks(2, [](const Group& group) {
    Walker walker;
    const torch::Tensor mean = walker.register_buffer("mean", torch::full({2}, 5.0F));
    DataParallel parallel(group, walker);
    parallel.wait(0);
    EXPECT_TRUE(torch::equal(mean, torch::full({2}, 5.0F)));
  });
}

TEST(DataParallelBuffers, OfTwoNamesAreAveragedOnce) {
  run_ranks(2, [](const Group& group) {
    Walker walker;
    const torch::Tensor mean = walker.register_buffer("mean", torch::zeros({2}));
    walker.register_buffer("mean_again", mean);
    DataParallel parallel(group, walker);
    mean.fill_(group.rank() == 0 ? 4 : 8);
    walker.pull(group.rank(), 0);
    parallel.wait(group.rank() == 0 ? 3 : 1);
    EXPECT_TRUE(torch::equal(mean, torch::full({2}, 5.0F)));
  });
}

// What a module keeps beside its parameters may be of any type.
TEST(DataParallelBuffers, OfTypesWithoutAMeanBecomeThoseOfOneRank) {
  using Buffers = DataParallelOptions::Buffers;
  for (const Buffers how : {Buffers::average, Buffers::broadcast, Buffers::leave}) {
    run_ranks(2, [how](const Group& group) {
      Walker walker;
      std::vector<torch::Tensor> buffers;
      for (const auto type : {torch::kComplexFloat, torch::kHalf, torch::kShort, torch::kChar}) {
        buffers.push_back(walker.register_buffer("of_" + std::to_string(buffers.size()),
                                                 torch::full({3}, group.rank() + 1, type)));
      }
      const torch::Tensor turned = walker.register_buffer(
          "turned", torch::arange(6, torch::kShort).mul(group.rank() + 1).view({2, 3}).t());
      DataParallel parallel(group, walker, {.buffers = how});
      for (const torch::Tensor& one : buffers) EXPECT_EQ(one[1].item<float>(), 1) << one.dtype();
      EXPECT_EQ(turned[2][1].item<int>(), 5);
      for (torch::Tensor& one : buffers) one.fill_(group.rank() + 4);
      walker.pull(group.rank(), 0);
      parallel.wait();
      const float expected = how == Buffers::leave ? 4.0F + static_cast<float>(group.rank()) : 4;
      for (const torch::Tensor& one : buffers) {
        EXPECT_EQ(one[2].item<float>(), expected) << one.dtype();
      }
    });
  }
}

TEST(DataParallelBuffers, OfConstantsStayTheseNumbersHoweverRowsWeigh) {
  run_ranks(3, [](const Group& group) {
    Walker walker;
    const torch::Tensor table = torch::arange(1, 200, torch::kFloat32).mul(0.37).log();
    const torch::Tensor mask = walker.register_buffer("mask", torch::ones({4}));
    const torch::Tensor kept = walker.register_buffer("table", table.clone());
    DataParallel parallel(group, walker);
    for (const std::int64_t middle : {10, 3, 29, 7, 1}) {
      walker.pull(group.rank(), 0);
      parallel.wait(group.rank() == 1 ? middle : 1);
      EXPECT_TRUE(torch::equal(mask, torch::ones({4}))) << middle;
      EXPECT_TRUE(torch::equal(kept, table)) << middle;
    }
  });
}

TEST(DataParallelErrors, AFrozenParameterThatIsTrainedLaterIsNamed) {
  for (const int world : {1, 2}) {
    run_ranks(world, [](const Group& group) {
      Walker walker;
      torch::Tensor body = walker.register_parameter("body", torch::ones({2}), false);
      DataParallel parallel(group, walker);
      body.set_requires_grad(true);
      const Error error = error_of([&] { parallel.wait(); });
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      EXPECT_THAT(error.what(), HasSubstr("parameter body was frozen"));
    });
  }
}

TEST(DataParallel, WhatAProgramDoesToItsGradientsMovesNoPlace) {
  run_ranks(2, [](const Group& group) {
    Walker walker;
    DataParallel parallel(group, walker);
    walker.pull(group.rank(), 0);
    parallel.wait();
    for (int step = 0; step < 3; ++step) {
      walker.values.mutable_grad().set_data(torch::full({8}, group.rank() + 3.0F));
      parallel.wait();
      EXPECT_TRUE(torch::equal(walker.values.grad(), torch::full({8}, 3.5F))) << step;
    }
  });
}

TEST(DataParallel, AParameterOfTwoModulesIsAveragedByBoth) {
  run_ranks(2, [](const Group& group) {
    Walker one, other;
    const torch::Tensor shared = one.register_parameter("shared", torch::ones({3}));
    other.register_parameter("shared", shared);
    DataParallel for_one(group, one), for_other(group, other);
    for (DataParallel* parallel : {&for_one, &for_other}) {
      one.zero_grad();
      other.zero_grad();
      (shared * (group.rank() == 0 ? 1 : 3)).sum().backward();
      parallel->wait();
      EXPECT_TRUE(torch::equal(shared.grad(), torch::full({3}, 2.0F)));
    }
  });
}

TEST(DataParallel, TensorsThatAreInNoModule) {
  run_ranks(2, [](const Group& group) {
    torch::Tensor weight = torch::full({3}, group.rank() + 1.0F).requires_grad_();
    torch::Tensor count = torch::full({1}, group.rank() + 40, torch::kInt64);
    DataParallel parallel(group, {{"weight", weight}}, {{"count", count}});
    EXPECT_TRUE(torch::equal(weight, torch::ones({3}))) << "rank 0's";
    (weight * (group.rank() + 1)).sum().backward();
    parallel.wait();
    EXPECT_TRUE(torch::equal(weight.grad(), torch::full({3}, 1.5F)));
    EXPECT_EQ(count.item<std::int64_t>(), 40);
  });
}

TEST(DataParallel, ClipsDoublesAndHalvesTogether) {
  run_ranks(2, [](const Group& group) {
    torch::Tensor doubles = torch::ones({3}, torch::kFloat64).requires_grad_();
    torch::Tensor halves = torch::ones({4}, torch::kBFloat16).requires_grad_();
    DataParallel parallel(group, {{"doubles", doubles}, {"halves", halves}});
    doubles.mutable_grad() = torch::full({3}, 2.0, torch::kFloat64);
    halves.mutable_grad() = torch::full({4}, 1.0F, torch::kBFloat16);
    parallel.wait();
    EXPECT_NEAR(parallel.clip_grad_norm(2), 4, 1e-6);
    EXPECT_NEAR(doubles.grad()[0].item<double>(), 1, 1e-6);
    EXPECT_NEAR(halves.grad()[0].to(torch::kFloat32).item<double>(), 0.5, 1e-3);
  });
}

// Adam moves whatever has a gradient, zeros too: by its moments.
TEST(DataParallel, AdamLeavesAloneWhatNobodyUses) {
  run_ranks(2, [](const Group& group) {
    Walker walker;
    const torch::Tensor nobodys = walker.register_parameter("nobodys", torch::ones({2}));
    DataParallel parallel(group, walker);
    torch::optim::Adam optimizer(walker.parameters(),
                                 torch::optim::AdamOptions(0.1).weight_decay(0.5));
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      walker.pull(group.rank(), step);
      parallel.wait();
      optimizer.step();
    }
    EXPECT_TRUE(torch::equal(nobodys, torch::ones({2})));
  });
}

struct Normed : torch::nn::Module {
  Normed()
      : linear(register_module("linear", torch::nn::Linear(4, 4))),
        norm(register_module("norm", torch::nn::BatchNorm1d(4))) {}

  torch::nn::Linear linear;
  torch::nn::BatchNorm1d norm;
};

// As in DDP: the rows of its rank alone; running statistics are the mean of the ranks'.
TEST(DataParallel, BatchNormSeesTheRowsOfItsRank) {
  run_ranks(2, [](const Group& group) {
    Normed net;
    DataParallel parallel(group, net);
    Normed alone;
    {
      const torch::NoGradGuard no_grad;
      for (std::size_t i = 0; i < net.parameters().size(); ++i) {
        alone.parameters()[i].copy_(net.parameters()[i]);
      }
    }
    const torch::Tensor rows = torch::arange(24, torch::kFloat32).view({6, 4}).sin() * 3;
    torch::Tensor mean = torch::zeros({4});
    for (int rank = 0; rank < 2; ++rank) {
      const torch::Tensor own = rows.slice(0, 3 * rank, 3 * rank + 3);
      alone.norm->running_mean.zero_();
      alone.norm(alone.linear(own)).pow(3).mean().backward();
      mean += alone.norm->running_mean / 2;
      if (rank == group.rank()) net.norm(net.linear(own)).pow(3).mean().backward();
    }
    parallel.wait();
    EXPECT_LT(largest_difference(net.linear->weight.grad(), alone.linear->weight.grad() / 2), 1e-6);
    EXPECT_LT(largest_difference(net.norm->running_mean, mean), 1e-6);
  });
}

}  // namespace
}  // namespace cohort::parallel
