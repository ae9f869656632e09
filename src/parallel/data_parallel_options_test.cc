// What a program can choose of how gradients are averaged, and what it is told where ranks do not go
// together.

#include "parallel/parallel_test_support.h"

namespace cohort::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Vector : torch::nn::Module {
  explicit Vector(std::int64_t size = 40)
      : values(register_parameter("values", torch::zeros({size / 8, 8}))) {}

  torch::Tensor values;
};

/// Rank r's gradients: other values for every rank and place, none of which is lost in rounding.
torch::Tensor gradient_of(int rank, std::int64_t size = 40) {
  return (torch::arange(size, torch::kFloat32).view({size / 8, 8}) + 1) * (rank + 1) / 64;
}

torch::Tensor mean_gradient(int world, std::int64_t size = 40) {
  torch::Tensor sum = torch::zeros({size / 8, 8});
  for (int rank = 0; rank < world; ++rank) sum += gradient_of(rank, size);
  return sum / world;
}

/// Counts what it is asked, and sums by the group.
class CountingReducer : public GradientReducer {
 public:
  explicit CountingReducer(const Group& group) : group_(group) {}

  void add(const torch::Tensor& gradients) override { added_.push_back(gradients); }
  void finish() override {
    for (const torch::Tensor& one : added_) group_.all_reduce(one);
    added_.clear();
    ++finished;
  }

  int finished = 0;

 private:
  const Group group_;
  std::vector<torch::Tensor> added_;
};

TEST(DataParallelOptions, AReducerOfOnesOwnSumsWeightedGradients) {
  run_ranks(3, [](const Group& group) {
    Vector module;
    DataParallelOptions options;
    const auto reducer = std::make_shared<CountingReducer>(group);
    options.reducer = reducer;
    DataParallel parallel(group, module, options);
    module.values.mutable_grad() = gradient_of(group.rank());
    parallel.wait();
    EXPECT_EQ(reducer->finished, 1);
    EXPECT_LT(largest_difference(module.values.grad(), mean_gradient(3)), 1e-6);
  });
}

TEST(DataParallelOptions, CompressedGradientsAreTheSameOnAllRanksAndCloseToTheAverage) {
  for (const char* kind : {"fp16", "bf16", "int8", "sign", "topk", "lowrank"}) {
    const auto ranks = results_of_ranks<torch::Tensor>(2, [kind](const Group& group) {
      Vector module;
      DataParallelOptions options;
      options.compression.kind = kind;
      options.compression.ratio = 0.25;
      options.compression.rank = 2;
      DataParallel parallel(group, module, options);
      torch::Tensor sum = torch::zeros_like(module.values);
      for (int step = 0; step < 40; ++step) {  // What a message leaves out comes with later ones.
        module.values.mutable_grad() = gradient_of(group.rank());
        parallel.wait();
        sum += module.values.grad();
      }
      return sum / 40;
    });
    EXPECT_TRUE(torch::equal(ranks[0], ranks[1])) << kind;
    const double largest = mean_gradient(2).max().item<double>();
    EXPECT_LT(largest_difference(ranks[0], mean_gradient(2)), 0.15 * largest) << kind;
  }
}

TEST(DataParallelOptions, AnUnknownCodecOrTwoWaysAtOnceAreRefused) {
  run_ranks(2, [](const Group& group) {
    Vector module;
    DataParallelOptions options;
    options.compression.kind = "fp61";
    EXPECT_THAT(error_of([&] { DataParallel(group, module, options); }).what(),
                HasSubstr("did you mean \"fp16\"?"));
  });
  run_ranks(2, [](const Group& group) {
    Vector module;
    DataParallelOptions options;
    options.compression.kind = "fp16";
    options.reducer = std::make_shared<CountingReducer>(group);
    EXPECT_EQ(error_of([&] { DataParallel(group, module, options); }).code(), ErrorCode::invalid);
  });
}

TEST(DataParallelErrors, DifferentModulesAreNamedOnAllRanks) {
  run_ranks(2, [](const Group& group) {
    Vector module(group.rank() == 0 ? 40 : 48);
    const Error error = error_of([&] { DataParallel(group, module); });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("parameter values of Float [5, 8]"),
                                    HasSubstr("rank 1 has parameter values of Float [6, 8]")));
  });
}

TEST(DataParallelErrors, RowsOnOneRankAloneAreRefusedOnAll) {
  run_ranks(3, [](const Group& group) {
    Vector module;
    DataParallel parallel(group, module);
    const Error error = error_of([&] {
      if (group.rank() == 1) parallel.wait(4);
      parallel.wait();
    });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), HasSubstr("rank 0 calls wait() and rank 1 calls wait(rows)"));
  });
}

TEST(DataParallelErrors, RanksThatWaitForDifferentModulesAreToldSo) {
  run_ranks(2, [](const Group& group) {
    Vector one;
    Vector other;
    DataParallel for_one(group, one);
    DataParallel for_other(group, other);
    const Error error = error_of([&] { group.rank() == 0 ? for_one.wait() : for_other.wait(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("module 1"), HasSubstr("module 2")));
  });
}

TEST(DataParallelErrors, WhatCannotBeTrainedTogetherIsRefused) {
  run_ranks(2, [](const Group& group) {
    torch::nn::Module none;
    EXPECT_THAT(error_of([&] { DataParallel(group, none); }).what(),
                HasSubstr("no parameter that is trained"));
  });
  run_ranks(2, [](const Group& group) {
    torch::nn::Embedding table(torch::nn::EmbeddingOptions(10, 4).sparse(true));
    DataParallel parallel(group, *table);
    table->forward(torch::tensor({1, 2})).sum().backward();
    const Error error = error_of([&] { parallel.wait(); });
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("gradient of weight is sparse"));
  });
  for (const int world : {1, 2}) {
    run_ranks(world, [](const Group& group) {
      Vector module;
      DataParallel parallel(group, module);
      EXPECT_EQ(error_of([&] { parallel.wait(-1); }).code(), ErrorCode::invalid);
      EXPECT_EQ(error_of([&] { parallel.clip_grad_norm(0); }).code(), ErrorCode::invalid);
    });
  }
}

/// Fails on one rank only.
class FailingReducer : public GradientReducer {
 public:
  explicit FailingReducer(const Group& group) : group_(group) {}
  void add(const torch::Tensor&) override {}
  void finish() override {
    if (group_.rank() == 1) throw std::runtime_error("no way to the accelerator");
    group_.barrier();
  }

 private:
  const Group group_;
};

// The others are in a call by then, or come to one, and would wait for as long as ranks may take.
TEST(DataParallelErrors, WhatGoesWrongOnOneRankAloneIsToldOnAll) {
  for (const char* engine : {"shm", "gloo"}) {
    run_ranks(engine, 3, [](const Group& group) {
      Vector module;
      DataParallel parallel(group, module);
      module.values.mutable_grad() = gradient_of(group.rank());
      if (group.rank() == 1) module.values.mutable_grad() = module.values.grad().to_sparse();
      const Error error = error_of([&] { parallel.wait(); });
      EXPECT_THAT(error.what(), HasSubstr("the gradient of values is sparse"));
      EXPECT_THAT(error_of([&] { group.barrier(); }).what(), HasSubstr("sparse"));
    });
    run_ranks(engine, 3, [](const Group& group) {
      Vector module;
      DataParallelOptions options;
      options.reducer = std::make_shared<FailingReducer>(group);
      DataParallel parallel(group, module, options);
      module.values.mutable_grad() = gradient_of(group.rank());
      try {
        parallel.wait();
        ADD_FAILURE() << "rank " << group.rank() << " has not heard of it";
      } catch (const Error& error) {  // Of the others: a consequence, and whose.
        EXPECT_NE(group.rank(), 1);
        EXPECT_EQ(error.code(), ErrorCode::peer_lost);
        EXPECT_EQ(error.rank(), 1);
        EXPECT_THAT(error.what(), HasSubstr("no way to the accelerator"));
      } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("no way to the accelerator"));
      }
    });
    run_ranks(engine, 3, [](const Group& group) {
      Vector one, other, third;
      DataParallel for_one(group, one), for_other(group, other), for_third(group, third);
      third.values.mutable_grad() = gradient_of(group.rank());
      const Error error = error_of([&] {
        group.rank() == 2 ? DataParallel::finish_all({&for_one, &for_other}) : for_third.wait();
      });
      EXPECT_THAT(error.what(), HasSubstr("module 3, which is not among those"));
    });
  }
}

TEST(DataParallelErrors, ARankThatLeavesIsNamed) {
  run_ranks(2, [](const Group& group) {
    Vector module;
    DataParallel parallel(group, module);
    parallel.wait();
    if (group.rank() == 1) return;
    const Error error = error_of([&] { parallel.wait(); });
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    EXPECT_EQ(error.rank(), 1);
  });
}

TEST(DataParallelOptions, EveryEngineAverages) {
  const auto by = [](const char* engine) {
    torch::Tensor result;
    run_ranks(engine, 4, [&](const Group& group) {
      Vector module(800);
      DataParallel parallel(group, module);
      module.values.mutable_grad() = gradient_of(group.rank(), 800) / 3;
      parallel.wait();
      EXPECT_LT(largest_difference(module.values.grad(), mean_gradient(4, 800) / 3), 1e-6);
      if (group.rank() == 2) result = module.values.grad().clone();
    });
    return result;
  };
  const torch::Tensor shared = by("shm");
  EXPECT_TRUE(torch::equal(shared, by("inproc")));
  by("gloo");
  by("composed");
}

// Each would otherwise wait for the others in another call, and none of them would say so.
TEST(DataParallelOptions, RanksOfDifferentOptionsAreNamedOnAllRanks) {
  const auto mean_of_two = [](const Group& group, DataParallelOptions& options) {
    options.reducer = std::make_shared<CountingReducer>(group);
  };
  const std::vector<std::function<void(const Group&, DataParallelOptions&)>> others = {
      mean_of_two,
      [](const Group&, DataParallelOptions& options) { options.compression.kind = "fp16"; },
      [](const Group&, DataParallelOptions& options) { options.compression.kind = "fp61"; },
      [](const Group&, DataParallelOptions& options) {
        options.buffers = DataParallelOptions::Buffers::broadcast;
      },
  };
  for (const char* engine : {"shm", "gloo"}) {
    for (const auto& change : others) {
      run_ranks(engine, 3, [&](const Group& group) {
        Vector module;
        DataParallelOptions options;
        if (group.rank() == 1) change(group, options);
        const Error error = error_of([&] { DataParallel(group, module, options); });
        EXPECT_EQ(error.code(), ErrorCode::invalid);
        EXPECT_THAT(error.what(), AllOf(HasSubstr("different modules or options"),
                                        HasSubstr("rank 0 has"), HasSubstr("rank 1 has")));
      });
    }
  }
}

// The last of rank 0's gradients is too small for a message of two values; then nobody has one.
TEST(DataParallelOptions, WhatMessagesLeaveOutOfASeldomParameterComesLater) {
  const auto ranks = results_of_ranks<torch::Tensor>(2, [](const Group& group) {
    Vector often, seldom;
    DataParallelOptions options;
    options.compression = {.kind = "topk", .ratio = 0.05, .momentum_correction = false};
    DataParallel parallel(group, {{"often", often.values}, {"seldom", seldom.values}}, {}, options);
    torch::Tensor sum = torch::zeros_like(seldom.values);
    for (int step = 0; step < 60; ++step) {
      often.values.mutable_grad() = torch::full_like(often.values, 1e-6);
      seldom.values.mutable_grad() = step == 0 ? gradient_of(group.rank()) : torch::Tensor();
      parallel.wait();
      if (seldom.values.grad().defined()) sum += seldom.values.grad();
    }
    return sum;
  });
  EXPECT_TRUE(torch::equal(ranks[0], ranks[1]));
  EXPECT_LT(largest_difference(ranks[0], mean_gradient(2)), 1e-5);
}

// Whatever else is going on: rows, several types, ranks that have run out, three ranks, other engines.
TEST(DataParallelOptions, CodecsGoWithRowsAndRanksThatHaveRunOut) {
  for (const char* engine : {"shm", "gloo"}) {
    run_ranks(engine, 3, [&](const Group& group) {
      Vector module;
      torch::Tensor wide = module.register_parameter("wide", torch::zeros({4}, torch::kFloat64));
      DataParallelOptions options;
      options.compression.kind = "fp16";
      DataParallel parallel(group, module, options);
      torch::optim::SGD optimizer(module.parameters(), 1.0);
      for (int batch = 0; batch <= group.rank(); ++batch) {
        module.values.mutable_grad() = gradient_of(group.rank());
        wide.mutable_grad() = torch::full({4}, group.rank() + 1.0, torch::kFloat64);
        parallel.wait(group.rank() + 1);
        optimizer.step();
      }
      parallel.finish([&] { optimizer.step(); });
      // By rows 1, 2, 3: of ranks 0, 1, 2; of ranks 1, 2; of rank 2.
      const double expected = -(14.0 / 6 + 13.0 / 5 + 3);
      EXPECT_NEAR(wide[2].item<double>(), expected, 1e-9) << engine;
      EXPECT_NEAR(module.values[1][2].item<double>(), expected * 11 / 64, 1e-2) << engine;
    });
  }
}

}  // namespace
}  // namespace cohort::parallel
