// What workers have learned is carried from one group of workers to the next, whatever became of
// the first: by every way the gradients of an all-reduce can travel, with every optimizer.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "strategy/worker_processes_test_support.h"

namespace cohort::strategy {
namespace {

constexpr double kTolerance = 1e-5;
constexpr std::int64_t kSteps = 10;

struct Route {
  std::string name;
  std::string engine;
  std::string algorithm;
  std::string compression = "none";
};

std::ostream& operator<<(std::ostream& out, const Route& route) {
  return out << route.name;
}

std::vector<Route> plain_routes() {
  return {{"in_place", "shm", "auto"},     {"shm_ring", "shm", "ring"},
          {"shm_direct", "shm", "direct"}, {"shm_tree", "shm", "tree"},
          {"gloo_ring", "gloo", "ring"},   {"gloo_direct", "gloo", "direct"}};
}

std::vector<Route> compressed_routes() {
  std::vector<Route> routes;
  for (const char* codec : {"fp16", "bf16", "int8", "sign", "topk", "lowrank"}) {
    routes.push_back({fmt::format("shm_{}", codec), "shm", "ring", codec});
  }
  routes.push_back({"gloo_topk", "gloo", "ring", "topk"});
  return routes;
}

std::vector<Route> all_routes() {
  std::vector<Route> routes = plain_routes();
  const auto compressed = compressed_routes();
  routes.insert(routes.end(), compressed.begin(), compressed.end());
  return routes;
}

struct Rule {
  std::string name;
  OptimizerOptions optimizer;
  double clip_norm = 0;
};

std::vector<Rule> rules() {
  return {{"sgd", {.kind = "sgd", .lr = 0.1}},
          {"momentum", {.kind = "sgd", .lr = 0.05, .momentum = 0.9}},
          {"clipped", {.kind = "sgd", .lr = 0.05, .momentum = 0.9}, 0.3},
          {"adam", {.kind = "adam", .lr = 1e-3}},
          {"adamw", {.kind = "adamw", .lr = 1e-3}},
          {"adagrad", {.kind = "adagrad", .lr = 1e-2}}};
}

GroupJob job_of(const Route& route, const Rule& rule) {
  GroupJob job;
  job.engine = route.engine;
  job.optimizer = rule.optimizer;
  job.clip_norm = rule.clip_norm;
  job.steps = kSteps;
  job.strategy.algorithm = route.algorithm;
  job.strategy.bucket_bytes = 100'000;
  job.strategy.compression.kind = route.compression;
  job.strategy.compression.ratio = 0.05;
  return job;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return largest;
}

/// One worker that was never disturbed. Made once per rule.
const WorkerEnd& alone(const Rule& rule) {
  static std::map<std::string, WorkerEnd> ends;
  if (!ends.contains(rule.name)) {
    ends[rule.name] =
        WorkerProcesses(job_of(plain_routes().front(), rule), {{{0}, kSteps}}).run().front();
  }
  return ends.at(rule.name);
}

void expect_same_model(const WorkerEnd& end, const WorkerEnd& wanted, double tolerance) {
  EXPECT_TRUE(end.finished);
  EXPECT_LE(largest_difference(end.parameters, wanted.parameters), tolerance);
  EXPECT_LE(largest_difference(end.buffers, wanted.buffers), tolerance);
}

class CarryStateDeathTest : public ::testing::TestWithParam<Route> {};
INSTANTIATE_TEST_SUITE_P(Routes, CarryStateDeathTest, ::testing::ValuesIn(all_routes()),
                         [](const auto& test) { return test.param.name; });

// The second group is made in the same processes, of nothing but what the first one has saved.
TEST_P(CarryStateDeathTest, ANewGroupOfAsManyGoesOnToTheSameBytes) {
  for (const Rule& rule : rules()) {
    // What is encoded does not depend on the optimizer, but for the momentum of top-k.
    if (GetParam().compression != "none" && rule.name != "momentum" && rule.name != "adam")
      continue;
    SCOPED_TRACE(rule.name);
    const GroupJob job = job_of(GetParam(), rule);
    const auto never_stopped = WorkerProcesses(job, {{{0, 1, 2}, kSteps}}).run();
    const auto stopped = WorkerProcesses(job, {{{0, 1, 2}, 4}, {{0, 1, 2}, kSteps}}).run();
    for (std::size_t worker = 0; worker < 3; ++worker) {
      EXPECT_EQ(stopped[worker].parameters, never_stopped[worker].parameters);
      EXPECT_EQ(stopped[worker].buffers, never_stopped[worker].buffers);
      EXPECT_EQ(stopped[worker].losses, never_stopped[worker].losses);
      EXPECT_EQ(stopped[worker].first_steps, (std::vector<std::int64_t>{0, 4}));
    }
    if (GetParam().compression == "none") {
      expect_same_model(stopped[0], alone(rule), kTolerance);
    }
  }
}

// With compression there is no run to compare with: it is another one for every number of workers.
TEST_P(CarryStateDeathTest, AGroupMayShrinkAndGrow) {
  const Rule rule = rules()[3];
  const auto ends = WorkerProcesses(job_of(GetParam(), rule),
                                    {{{0, 1, 2}, 3}, {{2, 0}, 5}, {{2}, 6}, {{2, 3, 0, 1}, kSteps}})
                        .run();
  for (const WorkerEnd& end : ends) {
    EXPECT_TRUE(end.finished);
    EXPECT_EQ(end.parameters, ends[0].parameters);
    EXPECT_EQ(end.buffers, ends[0].buffers);
    EXPECT_EQ(end.first_steps.back(), 6);
  }
  if (GetParam().compression == "none") expect_same_model(ends[0], alone(rule), kTolerance);
}

struct Death {
  std::string name;
  std::string failpoints;
};

/// Kills in the fifth step or later.
std::vector<Death> deaths(const Route& route) {
  std::vector<Death> all = {{"before the gradients", "allreduce.before-gradients=kill@5"},
                            {"after the update", "allreduce.after-update=kill@5"}};
  if (route.name == "in_place") {
    // Every worker has two blocks of parameters a step.
    for (const int passing : {9, 10, 11, 12}) {
      all.push_back({fmt::format("before block {}", passing),
                     fmt::format("allreduce.in-update=kill@{}", passing)});
      all.push_back({fmt::format("within block {}", passing),
                     fmt::format("allreduce.in-block=kill@{}", passing)});
    }
  }
  return all;
}

void expect_survivors_reach(const std::vector<WorkerEnd>& ends, int victim, const Route& route,
                            const Rule& rule) {
  for (int worker = 0; worker < 3; ++worker) {
    if (worker == victim) continue;
    const WorkerEnd& end = ends[static_cast<std::size_t>(worker)];
    EXPECT_TRUE(end.finished);
    EXPECT_EQ(end.parameters, ends[victim == 0 ? 1 : 0].parameters);
    if (route.compression == "none") expect_same_model(end, alone(rule), kTolerance);
  }
}

std::vector<int> survivors_of(int victim) {
  std::vector<int> workers = {0, 1, 2};
  std::erase(workers, victim);
  return workers;
}

TEST_P(CarryStateDeathTest, SurvivorsGoOnWhenOneIsKilledAtAnyPoint) {
  int number = 0;
  for (const Death& death : deaths(GetParam())) {
    for (const int victim : {0, 1, 2}) {
      // Not every rule with every death, but over all of them.
      const Rule rule = rules()[static_cast<std::size_t>(number++ % 6)];
      SCOPED_TRACE(fmt::format("{}, worker {} killed {}", rule.name, victim, death.name));
      WorkerProcesses group(job_of(GetParam(), rule),
                            {{{0, 1, 2}, kSteps}, {survivors_of(victim), kSteps}},
                            {.worker = victim, .failpoints = death.failpoints});
      expect_survivors_reach(group.run(), victim, GetParam(), rule);
    }
  }
}

// The model is made whole where it stands: that, too, may be broken off, and is then gone on with.
TEST(CarriedInPlaceDeathTest, TheLastOneGoesOnWhenItsCarrierIsKilledToo) {
  const Route in_place = plain_routes().front();
  int number = 0;
  for (const char* death : {"allreduce.in-block=kill@9", "allreduce.in-update=kill@10",
                            "allreduce.after-update=kill@5"}) {
    for (const int blocks : {1, 2, 3, 4}) {
      const Rule rule = rules()[static_cast<std::size_t>(number++ % 6)];
      SCOPED_TRACE(fmt::format("{}, {}, then killed at block {}", rule.name, death, blocks));
      WorkerProcesses group(
          job_of(in_place, rule), {{{0, 1, 2}, kSteps}, {{2}, kSteps}},
          {.worker = 0, .failpoints = death},
          {.worker = 1, .failpoints = fmt::format("allreduce.in-carry=kill@{}", blocks)});
      const auto ends = group.run();
      expect_same_model(ends[2], alone(rule), kTolerance);
    }
  }
}

TEST_P(CarryStateDeathTest, SurvivorsGoOnWhenOneIsKilledAtAnyTime) {
  Random random(11);
  const int rounds = GetParam().name == "in_place" ? 40 : 6;
  for (int round = 0; round < rounds; ++round) {
    const int victim = static_cast<int>(random.below(3));
    const auto step = static_cast<std::int64_t>(1 + random.below(kSteps - 2));
    const std::uint64_t later = random.below(200'000);
    const Rule rule = rules()[random.below(6)];
    SCOPED_TRACE(
        fmt::format("{}, worker {} killed in step {}, round {}", rule.name, victim, step, round));
    const WorkerProcesses* running = nullptr;
    WorkerProcesses group(job_of(GetParam(), rule),
                          {{{0, 1, 2}, kSteps}, {survivors_of(victim), kSteps}},
                          {.worker = victim, .failpoints = "", .kill = [&](pid_t pid) {
                             while (running->steps_begun(victim) < step) {
                             }
                             for (std::uint64_t i = 0; i < later; ++i) running->steps_begun(victim);
                             ::kill(pid, SIGKILL);
                           }});
    running = &group;
    expect_survivors_reach(group.run(), victim, GetParam(), rule);
  }
}

}  // namespace
}  // namespace cohort::strategy
