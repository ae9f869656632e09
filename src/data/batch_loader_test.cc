// Proves that batches come in the order of BatchSequence and stay until the next call, whoever
// gathers them (each test runs with the thread and without), that failures reach the caller, and
// that validation parts cover the set once.
#include "data/batch_loader.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cohort::data {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Preparation = BatchLoader::Preparation;

/// Sample i is the number i, its target 10 i.
std::shared_ptr<const Dataset> numbers(std::int64_t samples) {
  const auto input = torch::arange(samples, torch::kFloat32).unsqueeze(1);
  return std::make_shared<TensorDataset>(input, torch::arange(samples, torch::kInt64) * 10);
}

std::vector<std::int64_t> inputs_of(const Batch& batch) {
  const auto ids = batch.input.flatten().to(torch::kInt64).contiguous();
  return {ids.data_ptr<std::int64_t>(), ids.data_ptr<std::int64_t>() + ids.numel()};
}

class Loader : public testing::TestWithParam<Preparation> {};

TEST_P(Loader, FollowsTheSequence) {
  for (int rank = 0; rank < 3; ++rank) {
    const BatchOptions options{.seed = 4, .batch = 8, .rank = rank, .world = 3};
    BatchLoader loader(numbers(21), options, GetParam());
    EXPECT_EQ(loader.has_thread(), GetParam() == Preparation::in_background);
    BatchSequence sequence(21, options);
    for (int i = 0; i < 50; ++i) {
      const LoadedBatch loaded = loader.next();
      const auto item = sequence.next();
      ASSERT_EQ(inputs_of(loaded.batch), std::vector(item.indices.begin(), item.indices.end()));
      EXPECT_TRUE(loaded.batch.target.equal((loaded.batch.input * 10).flatten().to(torch::kInt64)));
      EXPECT_EQ(loaded.first_row, item.place.first_row);
      EXPECT_EQ(loaded.after, item.place.after);
      EXPECT_EQ(loaded.last_of_epoch, item.place.last_of_epoch);
    }
  }
}

TEST_P(Loader, UsesTwoBuffersAtMost) {
  BatchLoader loader(numbers(40), {.batch = 7}, GetParam());
  std::set<const void*> seen;
  for (int i = 0; i < 40; ++i) seen.insert(loader.next().batch.input.data_ptr());
  EXPECT_LE(seen.size(), 2u);
}

TEST_P(Loader, ABatchStaysUntilTheNextCall) {
  BatchLoader loader(numbers(1000), {.batch = 10}, GetParam());
  for (int i = 0; i < 100; ++i) {
    const LoadedBatch loaded = loader.next();
    const auto before = inputs_of(loaded.batch);
    std::this_thread::yield();
    ASSERT_EQ(inputs_of(loaded.batch), before);
  }
}

// 4 workers share a last batch of 2: two of them have nothing, and then rows again.
TEST_P(Loader, GivesAWorkerWithoutSamplesABatchWithoutRows) {
  BatchLoader loader(numbers(10), {.batch = 8, .rank = 3, .world = 4}, GetParam());
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(loader.next().batch.input.sizes(), (std::vector<std::int64_t>{2, 1}));
    const LoadedBatch last = loader.next();
    EXPECT_EQ(last.batch.input.sizes(), (std::vector<std::int64_t>{0, 1}));
    EXPECT_EQ(last.batch.target.sizes(), (std::vector<std::int64_t>{0}));
    EXPECT_EQ(last.global_rows, 2);
    EXPECT_TRUE(last.last_of_epoch);
  }
}

/// Cannot gather nothing, nor more than once beyond `good` times.
class Fragile : public Dataset {
 public:
  explicit Fragile(int good) : good_(good) {}
  std::int64_t size() const override { return 100; }
  Batch gather(std::span<const std::int64_t> indices) const override {
    if (indices.empty() || gathered_++ >= good_) throw std::out_of_range("the disk is gone");
    const auto rows = static_cast<std::int64_t>(indices.size());
    return {torch::zeros({rows, 2}), torch::zeros({rows}, torch::kInt64)};
  }

 private:
  int good_;
  mutable std::atomic<int> gathered_ = 0;
};

TEST_P(Loader, HandsAnExceptionToTheCaller) {
  BatchLoader loader(std::make_shared<Fragile>(3), {.batch = 10}, GetParam());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loader.next().batch.input.size(0), 10);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT([&] { loader.next(); },
                ThrowsMessage<std::out_of_range>(HasSubstr("the disk is gone")));
  }
}

class Short : public Dataset {
 public:
  std::int64_t size() const override { return 100; }
  Batch gather(std::span<const std::int64_t>) const override {
    return {torch::zeros({10, 2}), torch::zeros({9}, torch::kInt64)};
  }
};

TEST_P(Loader, ChecksWhatADatasetReturns) {
  BatchLoader loader(std::make_shared<Short>(), {.batch = 10}, GetParam());
  EXPECT_THAT([&] { loader.next(); },
              ThrowsMessage<Error>(HasSubstr("returned 9 rows of target for 10 samples")));
}

TEST_P(Loader, CanBeDroppedAtAnyTime) {
  for (int taken = 0; taken < 20; ++taken) {
    BatchLoader loader(numbers(100), {.batch = 3}, GetParam());
    for (int i = 0; i < taken % 4; ++i) loader.next();
  }
}

INSTANTIATE_TEST_SUITE_P(BothWays, Loader,
                         testing::Values(Preparation::in_background, Preparation::in_next));

TEST(BatchLoader, OverlapsADatasetThatMayWait) {
  EXPECT_TRUE(BatchLoader(std::make_shared<Fragile>(9), {.batch = 3}).has_thread());
}

TEST(EvaluationBatches, CoverTheSetOnceInOrder) {
  for (int world = 1; world <= 4; ++world) {
    std::vector<std::int64_t> seen;
    for (int rank = 0; rank < world; ++rank) {
      EvaluationBatches batches(numbers(23), 4, rank, world);
      for (int pass = 0; pass < 2; ++pass) {
        std::vector<std::int64_t> mine;
        while (const auto batch = batches.next()) {
          const auto ids = inputs_of(*batch);
          EXPECT_LE(ids.size(), 4u);
          mine.insert(mine.end(), ids.begin(), ids.end());
        }
        EXPECT_EQ(std::ssize(mine), batches.size());
        if (pass == 0) seen.insert(seen.end(), mine.begin(), mine.end());
        batches.restart();
      }
    }
    EXPECT_EQ(seen, inputs_of({torch::arange(23), {}}));
  }
}

TEST(EvaluationBatches, AWorkerWithoutSamplesHasNoBatches) {
  EXPECT_FALSE(EvaluationBatches(numbers(2), 4, 2, 3).next().has_value());
}

TEST(TensorDataset, ChecksItsTensors) {
  EXPECT_THAT(
      [] {
        TensorDataset(torch::zeros({3, 2}), torch::zeros({4}));
      },
      ThrowsMessage<Error>(HasSubstr("input tensor has 3 rows and the target tensor 4")));
  EXPECT_THAT([] { TensorDataset(torch::zeros({}), torch::zeros({4})); },
              ThrowsMessage<Error>(HasSubstr("the input tensor has no rows")));
  EXPECT_THAT([] { TensorDataset(torch::zeros({3}), {}); },
              ThrowsMessage<Error>(HasSubstr("the target tensor is not defined")));
  const std::int64_t beyond = 3;
  EXPECT_THAT(
      [&] {
        TensorDataset(torch::zeros({3}), torch::zeros({3})).gather({&beyond, 1});
      },
      ThrowsMessage<Error>(HasSubstr("there is no sample 3 in a dataset of 3")));
}

TEST(TensorDataset, GathersAnyTypeAndLayout) {
  const std::vector<std::int64_t> wanted = {4, 0, 4};
  const auto index = torch::tensor(wanted);
  for (const auto type : {torch::kFloat32, torch::kUInt8, torch::kInt64, torch::kFloat64}) {
    const auto input = torch::arange(30).reshape({2, 3, 5}).to(type).permute({2, 1, 0});
    const TensorDataset dataset(input, torch::arange(5));
    const Batch batch = dataset.gather(wanted);
    EXPECT_TRUE(batch.input.equal(input.index_select(0, index)));
    EXPECT_TRUE(batch.target.equal(index));
  }
}

}  // namespace
}  // namespace cohort::data
