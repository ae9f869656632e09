// Groups of workers one after the other whose work is handed out: every piece is done once, whoever
// comes, goes or dies.

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <optional>

#include "strategy/servers/server_groups_test_support.h"

namespace cohort::strategy {
namespace {

constexpr std::int64_t kAllSteps = 1 << 20;
constexpr int kTries = 50;  // To see what depends on who is faster.

StrategyOptions server(const std::string& consistency) {
  StrategyOptions options;
  options.kind = "parameter-server";
  options.consistency = consistency;
  return options;
}

struct Loose {
  const char* name;
  StrategyOptions strategy;
};

std::vector<Loose> loose_strategies() {
  StrategyOptions quorum = server("k-of-n");
  quorum.quorum = 2;
  StrategyOptions deltas = server("async");
  deltas.push = "delta";
  deltas.local_steps = 3;
  StrategyOptions partial;
  partial.kind = "averaging";
  partial.every = 3;
  partial.outer = {.kind = "nesterov", .lr = 0.7, .momentum = 0.5};
  partial.mode = "partial";
  partial.quorum = 2;
  StrategyOptions bounded = server("bounded");
  bounded.staleness = 2;
  return {{"async", server("async")},
          {"bounded", bounded},
          {"quorum", quorum},
          {"deltas", deltas},
          {"partial", partial}};
}

std::int64_t steps_of_a_push(const StrategyOptions& strategy) {
  return strategy.kind == "averaging" ? strategy.every : strategy.local_steps;
}

class EveryLooseStrategy : public testing::TestWithParam<Loose> {
 protected:
  void count(const std::vector<GroupEnd>& ends) {
    for (const GroupEnd& end : ends) {
      for (const cluster::Claim& claim : end.done) ++times_[claim];
    }
  }

  void expect_each_once(const Job& job) const {
    EXPECT_EQ(times_.size(), static_cast<std::size_t>(job.train.steps * job.cluster.workers));
    for (const auto& [claim, times] : times_) {
      EXPECT_EQ(times, 1) << "part " << claim.part << " of step " << claim.step;
    }
  }

  std::map<cluster::Claim, int> times_;
};

TEST_P(EveryLooseStrategy, DoesEveryPieceOnceInGroupsOfAnySize) {
  for (const int servers : {1, 2}) {
    times_.clear();
    const Job job = word_job(GetParam().strategy, 3, servers);
    GroupRun run{.job = job, .workers = 3, .until = 11};
    std::optional<ServerHouse> house;
    std::vector<GroupEnd> ends;
    // On a busy machine the others may have done everything before worker 0 can stop them.
    for (int tries = 0; tries < kTries; ++tries) {
      house.emplace(job);
      ends = train_group(run, *house);
      if (ends[0].saved.step < job.train.steps) break;
    }
    count(ends);
    const double loss_before = ends[0].loss;
    ASSERT_LT(ends[0].saved.step, job.train.steps) << "something is left to the others";
    for (const int workers : {2, 4, 1}) {
      run.workers = workers;
      run.starts = carried(ends);
      ++run.generation;
      if (workers == 1) run.until = kAllSteps;
      ends = train_group(run, *house);
      count(ends);
    }
    expect_each_once(job);
    EXPECT_EQ(ends[0].saved.step, job.train.steps);
    EXPECT_LT(ends[0].loss, loss_before);
  }
}

TEST_P(EveryLooseStrategy, DoesEveryPieceOnceFromASavedState) {
  const Job job = word_job(GetParam().strategy, 2, 2);
  GroupRun run{.job = job, .workers = 2, .until = 13};
  ServerHouse first(job);
  const auto ends = train_group(run, first);
  count(ends);
  run.workers = 3;
  run.until = kAllSteps;
  run.starts = {&ends[0].saved};
  ServerHouse second(job);
  const auto last = train_group(run, second);
  EXPECT_EQ(last[2].first_step, ends[0].saved.step);
  count(last);
  expect_each_once(job);
}

TEST_P(EveryLooseStrategy, GoesOnWithoutALostWorker) {
  const std::int64_t steps = steps_of_a_push(GetParam().strategy);
  for (const std::int64_t dies_after : {6, 8}) {
    times_.clear();
    const Job job = word_job(GetParam().strategy, 3, 2);
    GroupRun run{.job = job,
                 .workers = 3,
                 .until = kAllSteps,
                 .dying = 2,
                 .dies_after = dies_after,
                 .may_break = true};
    std::optional<ServerHouse> house;
    std::vector<GroupEnd> ends;
    // On a busy machine the others may have done everything before it could die.
    for (int tries = 0; tries < kTries; ++tries) {
      house.emplace(job);
      ends = train_group(run, *house);
      if (ends[2].died) break;
    }
    EXPECT_GT(ends[0].done.size() + ends[1].done.size(), 100U) << "nobody stopped";
    count(ends);
    // What it had not pushed yet is done again.
    std::vector<cluster::Claim> unpushed = ends[2].done;
    ASSERT_EQ(unpushed.size(), static_cast<std::size_t>(dies_after));
    unpushed.erase(unpushed.begin(), unpushed.end() - dies_after % steps);
    for (const cluster::Claim& claim : unpushed) --times_[claim];
    expect_each_once(job);
    EXPECT_TRUE(ends[0].lost_a_peer) << "when they wanted to meet";
    run.dying = -1;
    run.generation = 2;
    run.workers = 2;
    run.starts = {&ends[1].carried, &ends[0].carried};
    const auto meeting = train_group(run, *house);
    EXPECT_TRUE(meeting[0].done.empty());
    EXPECT_EQ(meeting[0].saved.step, job.train.steps);
  }
}

TEST_P(EveryLooseStrategy, BringsTheNextPieceWithTheAnswerToAPush) {
  const bool answers_at_once = GetParam().strategy.quorum == StrategyOptions().quorum;
  for (const int servers : {1, 2}) {
    times_.clear();
    const Job job = word_job(GetParam().strategy, 3, servers);
    GroupRun run{.job = job, .workers = 3, .until = kAllSteps};
    ServerHouse house(job);
    for (const GroupEnd& end : train_group(run, house)) {
      count({end});
      const auto done = static_cast<std::int64_t>(end.done.size());
      const std::int64_t pushes = done / steps_of_a_push(GetParam().strategy);
      // Where it did not push, to begin with, and after the last push of all.
      const std::int64_t asked = servers == 1 || answers_at_once ? done - pushes + 2 : done + 1;
      EXPECT_LE(end.asked, asked) << done << " pieces, " << pushes << " pushes";
    }
    expect_each_once(job);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, EveryLooseStrategy, testing::ValuesIn(loose_strategies()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cohort::strategy
