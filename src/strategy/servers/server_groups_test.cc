// Groups of workers one after the other, with servers whose memory outlives them or a saved state
// in between: what is in step goes on as if nothing had happened.

#include <gmock/gmock.h>

#include "strategy/own_memory_forms.h"
#include "strategy/servers/server_groups_test_support.h"

namespace cohort::strategy {
namespace {

constexpr double kTolerance = 1e-5;

StrategyOptions server(const std::string& consistency) {
  StrategyOptions options;
  options.kind = "parameter-server";
  options.consistency = consistency;
  return options;
}

StrategyOptions averaging(std::int64_t every) {
  StrategyOptions options;
  options.kind = "averaging";
  options.every = every;
  options.outer = {.kind = "nesterov", .lr = 0.7, .momentum = 0.5};
  return options;
}

std::vector<OptimizerOptions> optimizers() {
  return {{.kind = "sgd", .lr = 0.05},
          {.kind = "sgd", .lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3},
          {.kind = "sgd", .lr = 0.05, .momentum = 0.9, .nesterov = true},
          {.kind = "adam", .lr = 1e-2},
          {.kind = "adamw", .lr = 1e-2, .weight_decay = 1e-2},
          {.kind = "adagrad", .lr = 1e-2, .weight_decay = 1e-2}};
}

void expect_same(const tensor::TrainingState& one, const tensor::TrainingState& other) {
  EXPECT_EQ(one.step, other.step);
  EXPECT_EQ(one.updates, other.updates);
  EXPECT_EQ(one.parameters, other.parameters);
  EXPECT_EQ(one.slots, other.slots);
  EXPECT_EQ(one.buffers, other.buffers);
}

double distance(const std::vector<float>& one, const std::vector<float>& other) {
  if (one.empty() || one.size() != other.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    largest = std::max<double>(largest, std::abs(one[i] - other[i]));
  }
  return largest;
}

tensor::TrainingState never_stopped(const Job& job, std::int64_t until) {
  ServerHouse house(job);
  GroupRun run{.job = job, .workers = static_cast<int>(job.cluster.workers), .until = until};
  return train_group(run, house)[0].saved;
}

/// Stops, saves, and goes on with new servers from what was saved.
tensor::TrainingState saved_and_resumed(const Job& job, std::int64_t stop, std::int64_t until) {
  GroupRun run{.job = job, .workers = static_cast<int>(job.cluster.workers), .until = stop};
  ServerHouse first(job);
  const tensor::TrainingState saved = train_group(run, first)[0].saved;
  run.until = until;
  run.starts = {&saved};
  ServerHouse second(job);
  return train_group(run, second)[0].saved;
}

/// Stops, and the same workers go on with new servers that have the memory of the old ones.
tensor::TrainingState carried_on(const Job& job, std::int64_t stop, std::int64_t until) {
  GroupRun run{.job = job, .workers = static_cast<int>(job.cluster.workers), .until = stop};
  ServerHouse house(job);
  const auto first = train_group(run, house);
  EXPECT_TRUE(first[0].carried.parameters.empty()) << "the servers have them";
  run.until = until;
  run.generation = 2;
  run.starts = carried(first);
  return train_group(run, house)[0].saved;
}

class EveryOptimizer : public testing::TestWithParam<OptimizerOptions> {};

TEST_P(EveryOptimizer, InLockstepGoesOnAsIfItHadNeverStopped) {
  for (const int workers : {1, 2, 3}) {
    for (const int servers : {1, 2}) {
      Job job = word_job(server("sync"), workers, servers);
      job.train.optimizer = GetParam();
      job.train.clip_norm = servers == 2 ? 0.05 : 0;
      const tensor::TrainingState whole = never_stopped(job, 12);
      EXPECT_EQ(whole.step, 12);
      expect_same(saved_and_resumed(job, 5, 12), whole);
      expect_same(carried_on(job, 5, 12), whole);
    }
  }
}

TEST_P(EveryOptimizer, AveragingGoesOnFromTheLastAverage) {
  for (const int servers : {1, 2}) {
    Job job = word_job(averaging(4), 2, servers);
    job.train.optimizer = GetParam();
    const tensor::TrainingState whole = never_stopped(job, 12);
    EXPECT_EQ(whole.step, 12);
    for (const std::int64_t stop : {6, 8}) expect_same(carried_on(job, stop, 12), whole);
    job.cluster.workers = 1;
    expect_same(saved_and_resumed(job, 6, 12), never_stopped(job, 12));
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, EveryOptimizer, testing::ValuesIn(optimizers()),
                         [](const auto& test) {
                           return test.param.kind + std::to_string(test.index);
                         });

TEST(ServerGroups, AveragesAreMadeAfterMultiplesOfTheirNumberOfSteps) {
  Job job = word_job(averaging(4), 2, 1);
  ServerHouse house(job);
  tensor::TrainingState state;
  GroupRun run{.job = job, .workers = 2, .until = 0};
  state = train_group(run, house)[0].saved;
  state.step = 6;  // As another strategy could have saved it.
  ServerHouse other(job);
  run.starts = {&state};
  run.until = 7;
  auto ends = train_group(run, other);
  EXPECT_EQ(ends[0].first_step, 6);
  EXPECT_EQ(ends[0].saved.step, 6) << "there was no average yet";
  run.starts = carried(ends);
  run.generation = 2;
  run.until = 9;
  ends = train_group(run, other);
  EXPECT_EQ(ends[1].first_step, 6);
  EXPECT_EQ(ends[0].saved.step, 8);
}

TEST(ServerGroups, AveragingIsDoneWhenItsLastStepsAreAveraged) {
  Job job = word_job(averaging(7), 2, 1);
  job.train.steps = 12;
  ServerHouse house(job);
  GroupRun run{.job = job, .workers = 2, .until = 12, .meets = true};
  const auto ends = train_group(run, house);
  EXPECT_EQ(ends[0].saved.step, 12);
  run.starts = carried(ends);
  run.generation = 2;
  EXPECT_EQ(train_group(run, house)[0].first_step, 12);
}

TEST(ServerGroups, AnyNumberOfWorkersMayGoOnInLockstep) {
  for (const int servers : {1, 2}) {
    Job job = word_job(server("sync"), 2, servers);
    job.cluster.workers = 1;
    const tensor::TrainingState whole = never_stopped(job, 15);
    ServerHouse house(job);
    GroupRun run{.job = job, .workers = 2, .until = 5, .meets = true};
    std::vector<GroupEnd> ends;
    for (const int workers : {2, 3, 1}) {
      run.workers = workers;
      run.starts = carried(ends);  // One of three has none, two of three are not there any more.
      ends = train_group(run, house);
      EXPECT_EQ(ends[0].first_step, run.until - 5);
      run.until += 5;
      ++run.generation;
    }
    EXPECT_LE(distance(ends[0].saved.parameters, whole.parameters), kTolerance);
    EXPECT_LE(distance(ends[0].saved.slots[0], whole.slots[0]), kTolerance);
  }
}

TEST(ServerGroups, ANewWorkerTakesOverTheChiefsOptimizer) {
  Job job = word_job(averaging(2), 2, 1);
  job.train.optimizer = {.kind = "adam", .lr = 1e-2};
  ServerHouse house(job);
  GroupRun run{.job = job, .workers = 2, .until = 6};
  auto first = train_group(run, house);
  EXPECT_NE(first[0].carried.slots, first[1].carried.slots) << "each has its own";
  first[1].carried.slots[1][0] = 7;
  run.starts = {&first[0].carried, &first[1].carried, nullptr};
  run.generation = 2;
  run.workers = 3;
  const auto second = train_group(run, house);
  EXPECT_EQ(second[1].carried.slots, first[1].carried.slots);
  EXPECT_EQ(second[2].carried.slots, first[0].carried.slots);
  EXPECT_EQ(second[2].carried.updates, 6);
  EXPECT_EQ(second[2].carried.buffers, first[0].carried.buffers);
}

// A worker that got no answer to its push cannot know whether the update was made.
TEST(ServerGroups, AreToldByTheServersWhetherTheLastPushCounts) {
  for (const bool averages : {false, true}) {
    Job job = word_job(averages ? averaging(2) : server("sync"), 2, 2);
    ServerHouse house(job);
    GroupRun run{.job = job, .workers = 2, .until = 6};
    const auto first = train_group(run, house);
    // Worker 0 knows of the step, or average, before the last only.
    tensor::TrainingState unsure = first[0].carried;
    std::vector<std::span<const float>> pushed(unsure.slots.begin(), unsure.slots.end());
    pushed.emplace_back(first[0].carried.buffers);
    set_own(unsure, kPushed, pushed);
    const std::int64_t before = averages ? 2 : 1;
    unsure.step -= before;
    unsure.updates -= before;
    if (unsure.pushed) unsure.pushed = {.version = unsure.pushed->version - 1, .next_step = 6};
    const std::vector<float> old_buffers(unsure.buffers.size(), 5.0F);
    unsure.buffers = old_buffers;
    run.starts = {&unsure, &first[1].carried};
    run.generation = 2;
    const auto second = train_group(run, house);
    EXPECT_EQ(second[0].first_step, 6);
    EXPECT_EQ(second[1].first_step, 6);
    expect_same(second[0].saved, first[0].saved);
    // The same worker where the servers have not made it.
    unsure.step += before;
    unsure.updates += before;
    if (unsure.pushed) ++unsure.pushed->version;
    run.generation = 3;
    EXPECT_EQ(train_group(run, house)[0].saved.buffers, old_buffers);
  }
}

// What messages have left out so far is lost, no more.
TEST(ServerGroups, WithCompressionGoOnLearning) {
  for (const char* codec : {"int8", "topk"}) {
    Job job = word_job(server("sync"), 2, 2);
    job.strategy.compression.kind = codec;
    job.strategy.compression.ratio = 0.2;
    ServerHouse house(job);
    GroupRun run{.job = job, .workers = 2, .until = 10, .meets = true};
    const auto first = train_group(run, house);
    run.until = 30;
    run.generation = 2;
    run.starts = carried(first);
    const auto second = train_group(run, house);
    EXPECT_EQ(second[1].first_step, 10);
    EXPECT_LT(second[0].loss, first[0].loss);
    ServerHouse others(job);
    run.starts = {&first[0].saved};
    const auto resumed = train_group(run, others);
    EXPECT_EQ(resumed[1].first_step, 10);
    EXPECT_LT(resumed[0].loss, first[0].loss);
  }
}

TEST(ServerGroups, SayThatTheModelIsLostWhereNobodyHasIt) {
  const Job job = word_job(server("sync"), 1, 1);
  ServerHouse house(job);
  GroupRun run{.job = job, .until = 3};
  const auto ends = train_group(run, house);
  run.starts = carried(ends);
  ServerHouse empty(job);
  transport::InprocHub hub(1);
  cluster::MemoryStore store;
  const auto servers = empty.serve(run, store);
  const auto engine = hub.engine(0);
  try {
    GroupWorker worker(run, *engine, store);
    FAIL() << "it went on from nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt) << "another group has it no more than this one";
    EXPECT_THAT(error.what(), testing::HasSubstr("after step 3"));
  }
}

TEST(ServerGroups, ALostWorkerPausesTheOthersAndNoStepIsHalfMade) {
  for (const auto& [averages, by_grpc] :
       {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
    for (const int servers : {1, 2}) {
      Job job = word_job(averages ? averaging(1) : server("sync"), 3, servers);
      job.strategy.outer = {};
      job.train.optimizer.momentum = averages ? 0 : 0.9;
      job.train.clip_norm = servers == 2 && !averages ? 0.05 : 0;
      ServerHouse house(job);
      GroupRun run{.job = job, .workers = 3, .until = 12, .dying = 1, .dies_after = 5};
      run.may_break = true;
      run.by_grpc = by_grpc;
      const auto first = train_group(run, house);
      EXPECT_TRUE(first[0].lost_a_peer);
      EXPECT_TRUE(first[2].lost_a_peer);
      EXPECT_EQ(first[0].done.size(), 5U);
      run.workers = 2;
      run.dying = -1;
      run.generation = 2;
      run.starts = {&first[2].carried, &first[0].carried};
      const auto second = train_group(run, house);
      EXPECT_EQ(second[0].first_step, 5);
      job.cluster.workers = 1;
      const tensor::TrainingState whole = never_stopped(job, 12);
      EXPECT_LE(distance(second[0].saved.parameters, whole.parameters), kTolerance);
      if (averages) continue;
      EXPECT_LE(distance(second[0].saved.buffers, whole.buffers), 10 * kTolerance);
    }
  }
}

}  // namespace
}  // namespace cohort::strategy
