// A model on several ranks makes the steps that one rank makes on their batches joined: whatever the
// numbers of rows, the order of backward passes, and what becomes of the gradients in between.

#include "parallel/parallel_test_support.h"

namespace cohort::parallel {
namespace {

constexpr std::int64_t kFeatures = 12;
constexpr double kExact = 1e-6;

struct Net : torch::nn::Module {
  Net()
      : first(register_module("first", torch::nn::Linear(kFeatures, 16))),
        second(register_module("second", torch::nn::Linear(16, 3))) {}

  torch::Tensor forward(const torch::Tensor& input) { return second(torch::tanh(first(input))); }

  torch::nn::Linear first, second;
};

/// Other first weights for every rank, as programs have that set no seed.
std::shared_ptr<Net> make_net(const Group& group, std::uint64_t seed = 5) {
  // One at a time, since torch's generator is the whole program's.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  torch::manual_seed(seed + static_cast<std::uint64_t>(group.rank()));
  return std::make_shared<Net>();
}

struct Rows {
  torch::Tensor input;
  torch::Tensor target;
};

/// All rows of a step, of all ranks.
Rows rows_of_step(std::int64_t rows, std::int64_t step) {
  const auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(100 + step));
  const torch::Tensor input = torch::randn({rows, kFeatures}, generator);
  return {input, torch::sin(input.slice(1, 0, 3) * 2)};
}

Rows part(const Rows& all, std::int64_t begin, std::int64_t end) {
  return {all.input.slice(0, begin, end), all.target.slice(0, begin, end)};
}

torch::Tensor loss_of(Net& net, const Rows& rows) {
  return torch::mse_loss(net.forward(rows.input), rows.target);
}

/// All parameters as one vector.
torch::Tensor weights_of_net(const torch::nn::Module& net) {
  std::vector<torch::Tensor> all;
  for (const torch::Tensor& one : net.parameters()) all.push_back(one.detach().flatten());
  return torch::cat(all).clone();
}

torch::optim::SGD sgd(const torch::nn::Module& net) {
  return torch::optim::SGD(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
}

/// How the rows of a step are cut among the ranks: where rank r's part ends.
using Cut = std::function<std::int64_t(int rank, int world)>;

constexpr std::int64_t kRows = 24;
constexpr int kSteps = 12;

std::int64_t equal_parts(int rank, int world) {
  return kRows * (rank + 1) / world;
}

/// The weights after kSteps steps, of every rank.
std::vector<torch::Tensor> train_cut(int world, const Cut& cut, bool give_rows,
                                     bool drop_gradients = false) {
  return results_of_ranks<torch::Tensor>(world, [&](const Group& group) {
    const auto net = make_net(group);
    DataParallel parallel(group, *net);
    auto optimizer = sgd(*net);
    for (int step = 0; step < kSteps; ++step) {
      for (const torch::Tensor& one : net->parameters()) {
        if (drop_gradients) torch::Tensor(one).mutable_grad() = torch::Tensor();
      }
      optimizer.zero_grad();
      const std::int64_t begin = group.rank() == 0 ? 0 : cut(group.rank() - 1, world);
      const std::int64_t end = cut(group.rank(), world);
      loss_of(*net, part(rows_of_step(kRows, step), begin, end)).backward();
      if (give_rows) {
        parallel.wait(end - begin);
      } else {
        parallel.wait();
      }
      optimizer.step();
    }
    return weights_of_net(*net);
  });
}

TEST(DataParallel, RanksMakeTheStepsOfOneOnTheJoinedBatch) {
  const torch::Tensor one = train_cut(1, equal_parts, false)[0];
  for (const int world : {2, 3, 4}) {
    const auto ranks = train_cut(world, equal_parts, false);
    EXPECT_LT(largest_difference(one, ranks[0]), kExact) << world;
    for (const torch::Tensor& other : ranks) EXPECT_TRUE(torch::equal(ranks[0], other)) << world;
    EXPECT_TRUE(torch::equal(ranks[0], train_cut(world, equal_parts, false)[0])) << world;
  }
}

TEST(DataParallel, GradientsThatAreDroppedAndNotZeroedComeOutTheSame) {
  const torch::Tensor kept = train_cut(2, equal_parts, false)[0];
  EXPECT_TRUE(torch::equal(kept, train_cut(2, equal_parts, false, /*drop_gradients=*/true)[0]));
}

TEST(DataParallel, RowsWeighUnevenBatches) {
  const torch::Tensor one = train_cut(1, equal_parts, false)[0];
  const Cut uneven = [](int rank, int world) {
    return rank + 1 == world ? kRows : std::int64_t{5} + rank;
  };
  for (const int world : {2, 3}) {
    EXPECT_LT(largest_difference(one, train_cut(world, uneven, true)[0]), kExact) << world;
    EXPECT_GT(largest_difference(one, train_cut(world, uneven, false)[0]), 100 * kExact) << world;
  }
}

TEST(DataParallel, ARankWithoutRowsCountsNothingThoughItsGradientsAreNaN) {
  const torch::Tensor one = train_cut(1, equal_parts, false)[0];
  const Cut all_of_rank_1 = [](int rank, int) { return rank == 0 ? std::int64_t{0} : kRows; };
  EXPECT_LT(largest_difference(one, train_cut(2, all_of_rank_1, true)[0]), kExact);
}

/// Batches of four rows; rank 0 has `own` of them, all others two more.
torch::Tensor train_until_all_have_finished(const Group& group, int own, bool follow) {
  const auto net = make_net(group);
  DataParallel parallel(group, *net);
  auto optimizer = sgd(*net);
  const int batches = group.rank() == 0 ? own : own + 2;
  for (int step = 0; step < batches; ++step) {
    optimizer.zero_grad();
    const Rows all = rows_of_step(4 * group.world(), step);
    loss_of(*net, part(all, 4 * group.rank(), 4 * group.rank() + 4)).backward();
    parallel.wait();
    optimizer.step();
  }
  parallel.finish(follow ? std::function<void()>([&] { optimizer.step(); })
                         : std::function<void()>());
  return weights_of_net(*net);
}

/// The same by one process: what all ranks have that still have batches.
torch::Tensor train_all_batches(int world, int own) {
  return results_of_ranks<torch::Tensor>(1, [&](const Group& group) {
    const auto net = make_net(group);
    auto optimizer = sgd(*net);
    for (int step = 0; step < own + 2; ++step) {
      optimizer.zero_grad();
      const Rows all = rows_of_step(4 * world, step);
      loss_of(*net, part(all, step < own ? 0 : 4, 4 * world)).backward();
      optimizer.step();
    }
    return weights_of_net(*net);
  })[0];
}

TEST(DataParallel, ARankThatHasRunOutLetsTheOthersGoOn) {
  for (const bool follow : {true, false}) {
    for (const int world : {2, 3}) {
      const auto ranks = results_of_ranks<torch::Tensor>(world, [&](const Group& group) {
        return train_until_all_have_finished(group, 3, follow);
      });
      EXPECT_LT(largest_difference(train_all_batches(world, 3), ranks[0]), kExact);
      for (const torch::Tensor& other : ranks) EXPECT_TRUE(torch::equal(ranks[0], other));
    }
  }
}

TEST(DataParallel, WhatABackwardPassLeavesInAnotherModuleIsNotSent) {
  const auto train = [](const Group& group) {
    const auto generator = make_net(group, 1);
    const auto judge = make_net(group, 50);
    DataParallel for_generator(group, *generator);
    DataParallel for_judge(group, *judge);
    auto step_generator = sgd(*generator);
    auto step_judge = sgd(*judge);
    for (int step = 0; step < 6; ++step) {
      const Rows all = rows_of_step(kRows, step);
      const Rows own = part(all, kRows * group.rank() / group.world(),
                            kRows * (group.rank() + 1) / group.world());
      const auto judged = [&] {
        const torch::Tensor made = generator->forward(own.input);
        return judge->forward(torch::cat({made, made, made, made}, 1));
      };
      step_generator.zero_grad();
      judged().pow(2).mean().backward();  // Also fills the judge's gradients.
      for_generator.wait();
      step_generator.step();
      step_judge.zero_grad();
      judged().pow(2).mean().backward();                         // Also fills the generator's.
      (judge->forward(own.input) - 1).pow(2).mean().backward();  // A second one: they add up.
      for_judge.wait();
      step_judge.step();
    }
    return torch::cat({weights_of_net(*generator), weights_of_net(*judge)});
  };
  const torch::Tensor one = results_of_ranks<torch::Tensor>(1, train)[0];
  EXPECT_LT(largest_difference(one, results_of_ranks<torch::Tensor>(2, train)[0]), 10 * kExact);
  EXPECT_TRUE(torch::equal(results_of_ranks<torch::Tensor>(2, train)[0],
                           results_of_ranks<torch::Tensor>(2, train)[1]));
}

TEST(DataParallel, BackwardPassesBeforeOneWaitAddUp) {
  run_ranks(2, [](const Group& group) {
    const auto net = make_net(group);
    DataParallel parallel(group, *net);
    const Rows all = rows_of_step(8, 0);
    for (int begin = 4 * group.rank(); begin < 4 * group.rank() + 4; begin += 2) {
      loss_of(*net, part(all, begin, begin + 2)).backward();
    }
    parallel.wait();
    const torch::Tensor got = net->first->weight.grad().clone();
    net->zero_grad();
    (2 * loss_of(*net, all)).backward();
    EXPECT_LT(largest_difference(got, net->first->weight.grad()), kExact);
  });
}

TEST(DataParallel, NobodysParameterKeepsNoGradientAndAnybodysGetsTheAverage) {
  run_ranks(3, [](const Group& group) {
    const auto net = make_net(group);
    const torch::Tensor nobodys = net->register_parameter("nobodys", torch::ones({3}));
    const torch::Tensor rank_1s = net->register_parameter("rank_1s", torch::ones({3}));
    DataParallel parallel(group, *net);
    torch::Tensor loss = loss_of(*net, rows_of_step(6, 0));
    if (group.rank() == 1) loss = loss + 6 * rank_1s.sum();
    loss.backward();
    parallel.wait();
    EXPECT_FALSE(nobodys.grad().defined());
    ASSERT_TRUE(rank_1s.grad().defined());
    EXPECT_TRUE(torch::equal(rank_1s.grad(), torch::full({3}, 2.0F)));
  });
}

struct Odd : torch::nn::Module {
  Odd()
      : tied(register_parameter("tied", torch::ones({2, 2}))),
        doubles(register_parameter("doubles", torch::ones({3}, torch::kFloat64))),
        halves(register_parameter("halves", torch::ones({5}, torch::kBFloat16))),
        frozen(register_parameter("frozen", torch::ones({2}), /*requires_grad=*/false)) {
    register_parameter("tied_again", tied);
  }

  torch::Tensor tied, doubles, halves, frozen;
};

TEST(DataParallel, TiedFrozenDoubleAndHalfParameters) {
  run_ranks(2, [](const Group& group) {
    Odd odd;
    {
      const torch::NoGradGuard no_grad;
      odd.frozen.fill_(group.rank() + 7);
    }
    DataParallel parallel(group, odd);
    EXPECT_TRUE(torch::equal(odd.frozen, torch::full({2}, 7.0F))) << "rank 0's";
    const double scale = group.rank() == 0 ? 1 : 3;
    ((odd.tied * odd.tied).sum() * scale + (odd.doubles * scale).sum() +
     (odd.halves * scale).sum().to(torch::kFloat32) + odd.frozen.sum())
        .backward();
    parallel.wait();
    EXPECT_TRUE(torch::equal(odd.tied.grad(), torch::full({2, 2}, 4.0F)));
    EXPECT_TRUE(torch::equal(odd.doubles.grad(), torch::full({3}, 2.0, torch::kFloat64)));
    EXPECT_TRUE(torch::equal(odd.halves.grad(), torch::full({5}, 2.0F, torch::kBFloat16)));
    EXPECT_FALSE(odd.frozen.grad().defined());
    EXPECT_NEAR(parallel.clip_grad_norm(1e9), std::sqrt(4 * 16 + 3 * 4 + 5 * 4), 1e-4);
  });
}

struct Counting : torch::nn::Module {
  Counting()
      : weight(register_parameter("weight", torch::ones({1}))),
        mean(register_buffer("mean", torch::zeros({2}))),
        count(register_buffer("count", torch::zeros({}, torch::kInt64))) {}

  torch::Tensor weight, mean, count;
};

TEST(DataParallel, BuffersAreAveragedSharedOrLeft) {
  using Buffers = DataParallelOptions::Buffers;
  for (const auto how : {Buffers::average, Buffers::broadcast, Buffers::leave}) {
    run_ranks(3, [how](const Group& group) {
      Counting net;
      DataParallelOptions options;
      options.buffers = how;
      DataParallel parallel(group, net, options);
      net.mean.fill_(3 * group.rank() + 1);
      net.count.fill_(group.rank() + 40);
      net.weight.sum().backward();
      parallel.wait();
      const double mean = how == Buffers::average     ? 4
                          : how == Buffers::broadcast ? 1
                                                      : 3 * group.rank() + 1;
      const std::int64_t count = how == Buffers::leave ? group.rank() + 40 : 40;
      EXPECT_NEAR(net.mean[1].item<double>(), mean, 1e-6);
      EXPECT_EQ(net.count.item<std::int64_t>(), count);
    });
  }
}

TEST(DataParallel, WhileItIsPausedGradientsAddUpAndNothingTravels) {
  run_ranks(2, [](const Group& group) {
    const auto net = make_net(group);
    DataParallel parallel(group, *net);
    const Rows all = rows_of_step(8, 0);
    const Rows first = part(all, 2 * group.rank(), 2 * group.rank() + 2);
    const Rows second = part(all, 4 + 2 * group.rank(), 6 + 2 * group.rank());
    {
      const auto pause = parallel.no_sync();
      loss_of(*net, first).backward();
      const torch::Tensor own = net->first->weight.grad().clone();
      parallel.wait();
      EXPECT_TRUE(torch::equal(own, net->first->weight.grad()));
    }
    loss_of(*net, second).backward();
    parallel.wait();
    const torch::Tensor got = net->first->weight.grad().clone();
    net->zero_grad();
    (2 * loss_of(*net, all)).backward();
    EXPECT_LT(largest_difference(got, net->first->weight.grad()), kExact);
  });
}

TEST(DataParallel, ClipsAsTorchDoes) {
  for (const int world : {1, 2}) {
    run_ranks(world, [](const Group& group) {
      const auto net = make_net(group);
      DataParallel parallel(group, *net);
      const auto twin = std::make_shared<Net>();
      {
        const torch::NoGradGuard no_grad;
        for (std::size_t i = 0; i < net->parameters().size(); ++i) {
          twin->parameters()[i].copy_(net->parameters()[i]);
        }
      }
      const Rows all = rows_of_step(8, 0);
      const int half = 8 / group.world();
      loss_of(*net, part(all, half * group.rank(), half * (group.rank() + 1))).backward();
      loss_of(*twin, all).backward();
      parallel.wait();
      const double theirs = torch::nn::utils::clip_grad_norm_(twin->parameters(), 0.01);
      EXPECT_NEAR(parallel.clip_grad_norm(0.01), theirs, 1e-6);
      EXPECT_LT(largest_difference(net->first->weight.grad(), twin->first->weight.grad()), 1e-7);
      EXPECT_NEAR(parallel.clip_grad_norm(1), 0.01, 1e-5);
    });
  }
}

}  // namespace
}  // namespace cohort::parallel
