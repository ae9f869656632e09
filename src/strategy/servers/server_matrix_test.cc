// What one strategy has saved, every other goes on from: any number of workers and servers.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "strategy/servers/server_groups_test_support.h"

namespace cohort::strategy {
namespace {

struct Way {
  const char* name;
  StrategyOptions strategy;
  int servers = 0;
};

std::vector<Way> ways_with(int servers) {
  const auto server = [](const std::string& consistency) {
    StrategyOptions options;
    options.kind = "parameter-server";
    options.consistency = consistency;
    return options;
  };
  StrategyOptions quorum = server("k-of-n");
  quorum.quorum = 2;
  StrategyOptions deltas = server("async");
  deltas.push = "delta";
  deltas.local_steps = 2;
  StrategyOptions averaging;
  averaging.kind = "averaging";
  averaging.every = 3;
  averaging.outer = {.kind = "momentum", .lr = 0.9, .momentum = 0.3};
  StrategyOptions partial = averaging;
  partial.mode = "partial";
  partial.quorum = 2;
  return {{"sync", server("sync"), servers},
          {"async", server("async"), servers},
          {"bounded", server("bounded"), servers},
          {"quorum", quorum, servers},
          {"deltas", deltas, servers},
          {"averaging", averaging, servers},
          {"partial", partial, servers}};
}

std::vector<Way> all_ways() {
  std::vector<Way> ways = ways_with(1);
  for (const Way& way : ways_with(2)) ways.push_back(way);
  ways.push_back({"allreduce", StrategyOptions()});
  StrategyOptions gossip;
  gossip.kind = "gossip";
  ways.push_back({"gossip", gossip});
  return ways;
}

/// Adam's slots are there on all servers; momentum is kept by workers on some.
std::vector<OptimizerOptions> optimizers() {
  return {{.kind = "adam", .lr = 5e-3},
          {.kind = "sgd", .lr = 0.02, .momentum = 0.5},
          {.kind = "adagrad", .lr = 2e-2}};
}

Job job_of(const Way& way, const OptimizerOptions& optimizer, int workers, std::int64_t steps) {
  Job job = word_job(way.strategy, workers, way.servers);
  job.train.steps = steps;
  job.train.optimizer = optimizer;
  return job;
}

std::vector<GroupEnd> run_from(const Job& job, const tensor::TrainingState* start,
                               std::int64_t until) {
  ServerHouse house(job);
  GroupRun run{.job = job, .workers = static_cast<int>(job.cluster.workers), .until = until};
  run.starts = {start};
  return train_group(run, house);
}

void expect_near(const std::vector<float>& one, const std::vector<float>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_NEAR(one[i], other[i], 1e-6 * std::abs(other[i])) << "float " << i;
  }
}

/// Sets the words' slots to zero: where workers keep the momentum rows have none.
std::vector<float> without_words(std::vector<float> slot) {
  const auto net = std::make_shared<WordNet>(0);
  const auto model = wrap(net);
  for (const tensor::FlatEntry& entry : tensor::ModelLayout::of(*model).parameters.entries) {
    if (entry.name == "words") std::fill_n(slot.data() + entry.offset, entry.count, 0.0F);
  }
  return slot;
}

class EveryWay : public testing::TestWithParam<Way> {
 protected:
  void expect_taken_over(const GroupEnd& saved, const Job& job) {
    const GroupEnd nothing_done = run_from(job, &saved.saved, 0)[0];
    const tensor::TrainingState& before = saved.saved;
    const tensor::TrainingState& after = nothing_done.saved;
    EXPECT_EQ(nothing_done.first_step, before.step);
    EXPECT_EQ(after.step, before.step);
    // Workers that meet take the mean, of equal numbers here.
    expect_near(after.parameters, before.parameters);
    expect_near(after.buffers, before.buffers);
    ASSERT_EQ(after.slots.size(), before.slots.size());
    for (std::size_t slot = 0; slot < before.slots.size(); ++slot) {
      expect_near(without_words(after.slots[slot]), without_words(before.slots[slot]));
    }
  }

  void expect_learns_on(const Way& to, const GroupEnd& saved, const Job& job) {
    const bool claims = to.strategy.kind == "gossip" || to.strategy.mode == "partial" ||
                        to.strategy.consistency != "sync";
    const std::int64_t until = claims ? 12 : saved.saved.step + 12;
    EXPECT_LT(run_from(job, &saved.saved, until)[0].loss, saved.loss);
  }
};

TEST_P(EveryWay, SavesWhatAllOthersGoOnFrom) {
  for (const OptimizerOptions& optimizer : optimizers()) {
    const GroupEnd saved = run_from(job_of(GetParam(), optimizer, 2, 12), nullptr, 12)[0];
    ASSERT_GT(saved.saved.step, 0);
    ASSERT_EQ(saved.saved.slots.size(), optimizer::make_optimizer(optimizer)->slots().size());
    int workers = GetParam().servers == 2 ? 3 : 1;
    for (const Way& to : all_ways()) {
      workers = 4 - workers;  // 1, 3, 1, … or 3, 1, 3, …
      SCOPED_TRACE(fmt::format("{} to {} with {} servers, {} workers", optimizer.kind, to.name,
                               to.servers, workers));
      // More than before: where work is handed out all of it may have been done by then.
      const Job job = job_of(to, optimizer, workers, saved.saved.step + 60);
      expect_taken_over(saved, job);
      if (optimizer.kind == "adam") expect_learns_on(to, saved, job);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Matrix, EveryWay, testing::ValuesIn(all_ways()), [](const auto& test) {
  return fmt::format("{}{}", test.param.name, test.param.servers);
});

}  // namespace
}  // namespace cohort::strategy
