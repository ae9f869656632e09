// Who takes which samples: N ranks see what one rank with N times the batch sees, an epoch can be
// taken up in the middle, and no rank is left waiting at its end.

#include <algorithm>
#include <numeric>
#include <sstream>

#include "parallel/parallel_test_support.h"

namespace cohort::parallel {
namespace {

using Batches = std::vector<std::vector<std::size_t>>;

Batches rest_of_epoch(DistributedSampler& sampler, std::size_t batch) {
  Batches batches;
  while (const auto next = sampler.next(batch)) batches.push_back(*next);
  return batches;
}

/// A whole epoch, of every rank.
std::vector<Batches> epoch_of_ranks(int world, std::int64_t samples, std::size_t batch,
                                    const SamplerOptions& options, std::int64_t epoch = 0) {
  return results_of_ranks<Batches>(world, [&](const Group& group) {
    DistributedSampler sampler(group, samples, 3, options);
    sampler.set_epoch(epoch);
    sampler.reset();
    return rest_of_epoch(sampler, batch);
  });
}

/// All ranks' samples in the order of the epoch.
std::vector<std::size_t> joined(const std::vector<Batches>& ranks) {
  std::vector<std::size_t> all;
  for (std::size_t batch = 0; batch < ranks.front().size(); ++batch) {
    for (const Batches& rank : ranks) {
      if (batch < rank.size()) all.insert(all.end(), rank[batch].begin(), rank[batch].end());
    }
  }
  return all;
}

std::vector<std::size_t> sorted(std::vector<std::size_t> values) {
  std::ranges::sort(values);
  return values;
}

std::vector<std::size_t> count_to(std::size_t end) {
  std::vector<std::size_t> all(end);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(DistributedSampler, RanksSeeWhatOneRankWithTheirBatchesJoinedSees) {
  const auto one = joined(epoch_of_ranks(1, 26, 6, {.last = LastBatch::keep}));
  EXPECT_EQ(joined(epoch_of_ranks(2, 26, 3, {.last = LastBatch::keep})), one);
  EXPECT_EQ(joined(epoch_of_ranks(3, 26, 2, {.last = LastBatch::keep})), one);
  EXPECT_EQ(sorted(one), count_to(26));
  EXPECT_NE(one, count_to(26)) << "shuffled";
}

TEST(DistributedSampler, TheLastBatchIsFilledDroppedOrKept) {
  // 26 samples, 3 ranks, batches of 4: two global batches of 12, and 2 samples.
  const auto sizes = [](LastBatch last) {
    std::vector<std::vector<std::size_t>> all;
    for (const Batches& rank : epoch_of_ranks(3, 26, 4, {.last = last})) {
      all.emplace_back();
      for (const auto& batch : rank) all.back().push_back(batch.size());
    }
    return all;
  };
  using Sizes = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(sizes(LastBatch::fill), (Sizes{{4, 4, 1}, {4, 4, 1}, {4, 4, 1}}));
  EXPECT_EQ(sizes(LastBatch::drop), (Sizes{{4, 4}, {4, 4}, {4, 4}}));
  EXPECT_EQ(sizes(LastBatch::keep), (Sizes{{4, 4, 1}, {4, 4, 1}, {4, 4}}));
  const auto filled = joined(epoch_of_ranks(3, 26, 4, {.last = LastBatch::fill}));
  EXPECT_EQ(filled.back(), filled.front()) << "the epoch's first sample once more";
  // Fewer samples than ranks.
  for (const Batches& rank : epoch_of_ranks(3, 1, 4, {})) EXPECT_EQ(rank, (Batches{{0}}));
}

TEST(DistributedSampler, EveryEpochHasItsOwnOrderWhichComesBack) {
  run_ranks(1, [](const Group& group) {
    DistributedSampler sampler(group, 30, 3);
    const Batches first = rest_of_epoch(sampler, 7);  // Without reset(): the first epoch.
    EXPECT_EQ(sampler.epoch(), 0);
    sampler.reset();
    EXPECT_EQ(sampler.epoch(), 1);
    EXPECT_NE(rest_of_epoch(sampler, 7), first);
    sampler.set_epoch(0);
    sampler.reset();
    EXPECT_EQ(rest_of_epoch(sampler, 7), first);
    DistributedSampler other(group, 30, 4);
    EXPECT_NE(rest_of_epoch(other, 7), first) << "another seed";
    DistributedSampler plain(group, 30, 3, {.shuffle = false});
    EXPECT_EQ(joined({rest_of_epoch(plain, 7)}), count_to(30));
  });
}

/// A new sampler with what the other one has saved.
DistributedSampler reloaded(const Group& group, const DistributedSampler& before,
                            const SamplerOptions& options) {
  torch::serialize::OutputArchive saved;
  before.save(saved);
  std::stringstream stream;
  saved.save_to(stream);
  torch::serialize::InputArchive loaded;
  loaded.load_from(stream);
  DistributedSampler after(group, 26, 3, options);
  after.load(loaded);
  return after;
}

TEST(DistributedSampler, AnEpochIsTakenUpInTheMiddleByAnyNumberOfRanks) {
  const SamplerOptions keep{.last = LastBatch::keep};
  const auto whole = joined(epoch_of_ranks(1, 26, 4, keep, 5));
  const std::vector<std::size_t> rest(whole.begin() + 12, whole.end());
  for (const int world : {1, 2, 3}) {
    const auto ranks = results_of_ranks<Batches>(world, [&](const Group& group) {
      DistributedSampler before(group, 26, 3, keep);
      before.set_epoch(5);
      before.reset();
      while (before.samples_done() < 12) before.next(static_cast<std::size_t>(12 / world));
      // Saved again before anything was taken of it: it is still where it was.
      DistributedSampler after = reloaded(group, reloaded(group, before, keep), keep);
      after.reset();
      EXPECT_EQ(after.epoch(), 5);
      return rest_of_epoch(after, 2);
    });
    EXPECT_EQ(joined(ranks), rest) << world;
  }
}

struct Numbers : torch::data::datasets::Dataset<Numbers> {
  torch::data::Example<> get(std::size_t index) override {
    return {torch::tensor(static_cast<std::int64_t>(index)), torch::tensor(0)};
  }
  torch::optional<std::size_t> size() const override { return 11; }
};

TEST(DistributedSampler, ALoaderFollowsTheProgramsCopy) {
  const auto ranks = results_of_ranks<std::vector<std::int64_t>>(2, [](const Group& group) {
    DistributedSampler sampler(group, 11, 3);
    auto loader = torch::data::make_data_loader(Numbers().map(torch::data::transforms::Stack<>()),
                                                sampler, 2);
    std::vector<std::int64_t> seen;
    for (const std::int64_t epoch : {0, 0, 1}) {
      sampler.set_epoch(epoch);
      for (auto& batch : *loader) {
        for (std::int64_t i = 0; i < batch.data.size(0); ++i) {
          seen.push_back(batch.data[i].template item<std::int64_t>());
        }
      }
      EXPECT_EQ(sampler.epoch(), epoch);
      EXPECT_EQ(sampler.samples_done(), 11);
    }
    return seen;
  });
  for (const auto& seen : ranks) {
    ASSERT_EQ(seen.size(), 18U);
    EXPECT_TRUE(std::equal(seen.begin(), seen.begin() + 6, seen.begin() + 6));
    EXPECT_FALSE(std::equal(seen.begin(), seen.begin() + 6, seen.begin() + 12));
  }
}

TEST(DistributedSampler, WhatMakesNoSenseIsRefused) {
  run_ranks(1, [](const Group& group) {
    EXPECT_EQ(error_of([&] { DistributedSampler(group, 0, 3); }).code(), ErrorCode::invalid);
    DistributedSampler sampler(group, 10, 3);
    EXPECT_EQ(error_of([&] { sampler.set_epoch(-1); }).code(), ErrorCode::invalid);
    EXPECT_EQ(error_of([&] { sampler.set_epoch(1, 11); }).code(), ErrorCode::invalid);
    EXPECT_EQ(error_of([&] { sampler.reset(0); }).code(), ErrorCode::invalid);
  });
}

}  // namespace
}  // namespace cohort::parallel
