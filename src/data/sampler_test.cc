// Proves the arithmetic of slices, epochs and cursors: any number of workers together see what one
// sees, and a sequence continues at any cursor and at any part of any step.
#include "data/sampler.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

namespace cohort::data {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(WorkerSlice, IsContiguousEvenAndWhole) {
  for (std::int64_t samples = 0; samples < 20; ++samples) {
    for (int world = 1; world <= 6; ++world) {
      std::int64_t at = 0;
      for (int rank = 0; rank < world; ++rank) {
        const Slice slice = worker_slice(samples, rank, world);
        EXPECT_EQ(slice.begin, at);
        EXPECT_EQ(slice.size(), samples / world + (rank < samples % world ? 1 : 0));
        at = slice.end;
      }
      EXPECT_EQ(at, samples);
    }
  }
}

TEST(StepsPerEpoch, KeepsTheLastBatch) {
  EXPECT_EQ(steps_per_epoch(100, 25), 4);
  EXPECT_EQ(steps_per_epoch(101, 25), 5);
  EXPECT_EQ(steps_per_epoch(3, 25), 1);
}

TEST(GlobalOrder, IsAPermutationOfSeedAndEpoch) {
  const GlobalOrder order(1000, 7);
  const auto first = order.epoch(0);
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(first, all);
  EXPECT_EQ(first, GlobalOrder(1000, 7).epoch(0));
  EXPECT_NE(first, order.epoch(1));
  EXPECT_NE(first, GlobalOrder(1000, 8).epoch(0));
}

struct Step {
  std::vector<std::int64_t> samples;
  BatchPlace place;
};

/// What all workers take together, step by step, put where their places say.
std::vector<Step> steps_of_all(std::int64_t samples, BatchOptions options, int steps) {
  std::vector<Step> result(static_cast<std::size_t>(steps));
  for (int rank = 0; rank < options.world; ++rank) {
    options.rank = rank;
    BatchSequence sequence(samples, options);
    for (Step& step : result) {
      for (std::int64_t micro = 0; micro < options.accumulate; ++micro) {
        const auto item = sequence.next();
        step.place = item.place;
        step.samples.resize(static_cast<std::size_t>(item.place.global_rows), -1);
        EXPECT_EQ(item.place.last_of_step, micro + 1 == options.accumulate);
        std::copy(item.indices.begin(), item.indices.end(),
                  step.samples.begin() + item.place.first_row);
      }
    }
  }
  return result;
}

class Workers : public testing::TestWithParam<std::tuple<int, int>> {};

// 23 samples in batches of 8: the last batch has 7, and 5 workers have slices of 1 and 2.
TEST_P(Workers, TogetherSeeWhatOneSees) {
  const auto [world, accumulate] = GetParam();
  const auto alone = steps_of_all(23, {.seed = 3, .batch = 8}, 7);
  const auto together =
      steps_of_all(23, {.seed = 3, .batch = 8, .world = world, .accumulate = accumulate}, 7);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(together[i].samples, alone[i].samples);
    EXPECT_EQ(together[i].place.epoch, static_cast<std::int64_t>(i) / 3);
    EXPECT_EQ(together[i].place.global_rows, i % 3 == 2 ? 7 : 8);
    EXPECT_EQ(together[i].place.last_of_epoch, i % 3 == 2);
    EXPECT_EQ(together[i].place.after, alone[i].place.after);
  }
  std::vector<std::int64_t> epoch;
  for (int i = 0; i < 3; ++i) {
    epoch.insert(epoch.end(), together[i].samples.begin(), together[i].samples.end());
  }
  EXPECT_EQ(epoch, GlobalOrder(23, 3).epoch(0));
}

INSTANTIATE_TEST_SUITE_P(WorldsAndMicroBatches, Workers,
                         testing::Combine(testing::Range(1, 6), testing::Values(1, 2, 3, 9)));

// Batch norm looks at a micro-batch of all workers, so it must hold the same samples for any
// number.
TEST(BatchSequence, MicroBatchesDoNotDependOnTheNumberOfWorkers) {
  for (int world = 1; world <= 3; ++world) {
    BatchSequence sequence(20, {.batch = 10, .world = world, .accumulate = 3});
    EXPECT_EQ(sequence.next().place.micro_rows, 4);
    EXPECT_EQ(sequence.next().place.micro_rows, 3);
    EXPECT_EQ(sequence.next().place.micro_rows, 3);
  }
}

TEST(BatchSequence, ContinuesAtACursor) {
  const BatchOptions options{.seed = 5, .batch = 4, .rank = 1, .world = 2};
  BatchSequence whole(10, options);
  std::vector<std::vector<std::int64_t>> taken;
  std::vector<Cursor> after;
  for (int i = 0; i < 9; ++i) {
    const auto item = whole.next();
    taken.emplace_back(item.indices.begin(), item.indices.end());
    after.push_back(item.place.after);
  }
  for (std::size_t stopped = 0; stopped < 8; ++stopped) {
    BatchOptions resumed = options;
    resumed.start = after[stopped];
    BatchSequence rest(10, resumed);
    for (std::size_t i = stopped + 1; i < taken.size(); ++i) {
      const auto item = rest.next();
      EXPECT_EQ(std::vector(item.indices.begin(), item.indices.end()), taken[i]);
      EXPECT_EQ(item.place.after, after[i]);
    }
  }
}

TEST(BatchSequence, GoesToAnyPartOfAnyStep) {
  const auto taken_by = [](BatchSequence& sequence) {
    const auto item = sequence.next();
    return std::vector(item.indices.begin(), item.indices.end());
  };
  BatchSequence wanderer(10, {.seed = 5, .batch = 4, .world = 3});
  for (const std::int64_t step : {7, 0, 2, 3, 11}) {
    for (const int part : {2, 0, 1}) {
      BatchSequence straight(10, {.seed = 5, .batch = 4, .rank = part, .world = 3});
      for (std::int64_t before = 0; before < step; ++before) straight.next();
      wanderer.seek({step, part});
      EXPECT_EQ(taken_by(wanderer), taken_by(straight));
    }
  }
}

TEST(BatchSequence, APieceThatCannotBeIsRefusedAndMovesNothing) {
  BatchSequence sequence(10, {.seed = 5, .batch = 4, .world = 3});
  sequence.seek({2, 1});
  for (const cluster::Claim& wrong :
       {cluster::Claim{-1, 0}, {0, -1}, {0, 3}, {std::numeric_limits<std::int64_t>::min(), 0}}) {
    EXPECT_THAT([&] { sequence.seek(wrong); }, ThrowsMessage<Error>(HasSubstr("there is no part")));
  }
  BatchSequence straight(10, {.seed = 5, .batch = 4, .world = 3});
  straight.seek({2, 1});
  EXPECT_EQ(sequence.next().place.first_row, straight.next().place.first_row);
}

TEST(BatchSequence, RefusesWhatMakesNoSense) {
  const auto making = [](std::int64_t samples, BatchOptions options) {
    return [=] { BatchSequence(samples, options); };
  };
  EXPECT_THAT(making(0, {}), ThrowsMessage<Error>(HasSubstr("training set is empty")));
  EXPECT_THAT(making(9, {.batch = 0}), ThrowsMessage<Error>(HasSubstr("the batch is 0")));
  EXPECT_THAT(making(9, {.accumulate = 0}), ThrowsMessage<Error>(HasSubstr("accumulate is 0")));
  EXPECT_THAT(making(9, {.rank = 2, .world = 2}), ThrowsMessage<Error>(HasSubstr("rank 2")));
  EXPECT_THAT(making(9, {.start = {0, 10}}),
              ThrowsMessage<Error>(HasSubstr("the training set has 9 samples")));
}

}  // namespace
}  // namespace cohort::data
