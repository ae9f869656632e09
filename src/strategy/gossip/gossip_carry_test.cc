// Workers without a centre: one that dies stops nobody, and no piece of work is lost with it.

#include <gmock/gmock.h>

#include "strategy/worker_processes_test_support.h"

namespace cohort::strategy {
namespace {

using ::testing::Each;
using ::testing::Ge;

constexpr std::int64_t kSteps = 30;

struct Kind {
  std::string name;
  std::string engine;  ///< shm: boxes in shared memory; gloo: by messages.
  std::string send;
  std::string compression = "none";
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

std::vector<Kind> kinds() {
  return {{"shared_parameters", "shm", "parameters"},
          {"shared_gradients", "shm", "gradients"},
          {"shared_topk", "shm", "gradients", "topk"},
          {"remote_parameters", "gloo", "parameters"},
          {"remote_gradients", "gloo", "gradients"}};
}

GroupJob job_of(const Kind& kind) {
  GroupJob job;
  job.engine = kind.engine;
  job.steps = kSteps;
  job.optimizer = {.kind = "adam", .lr = 1e-3};
  job.strategy.kind = "gossip";
  job.strategy.send = kind.send;
  job.strategy.topology = "ring";
  job.strategy.compression.kind = kind.compression;
  job.strategy.compression.ratio = 0.05;
  return job;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double square = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    square += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return std::sqrt(square);
}

class GossipCarryDeathTest : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, GossipCarryDeathTest, ::testing::ValuesIn(kinds()),
                         [](const auto& test) { return test.param.name; });

TEST_P(GossipCarryDeathTest, SurvivorsDoAllTheWork) {
  for (const char* failpoints : {"gossip.before-update=kill@6", "gossip.after-update=kill@6"}) {
    for (const int victim : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("worker {} killed by {}", victim, failpoints));
      std::vector<int> survivors = {0, 1, 2};
      std::erase(survivors, victim);
      WorkerProcesses group(job_of(GetParam()), {{{0, 1, 2}, kSteps}, {survivors, kSteps}},
                            {.worker = victim, .failpoints = failpoints, .pieces = 6});
      const auto ends = group.run();
      for (const int worker : survivors) {
        const WorkerEnd& end = ends[static_cast<std::size_t>(worker)];
        EXPECT_TRUE(end.finished);
        EXPECT_EQ(end.parameters, ends[static_cast<std::size_t>(survivors[0])].parameters);
        EXPECT_EQ(end.buffers, ends[static_cast<std::size_t>(survivors[0])].buffers);
        EXPECT_EQ(end.first_steps.size(), 2U);
      }
      // Where who counted is gone, the others do again what they do not know to be done.
      if (GetParam().engine == "shm" || victim != 0) {
        EXPECT_THAT(group.times_done(), Each(1));
        EXPECT_GT(ends[static_cast<std::size_t>(survivors[0])].first_steps[1], 0);
      } else {
        EXPECT_THAT(group.times_done(), Each(Ge(1)));
      }
    }
  }
}

TEST_P(GossipCarryDeathTest, AGroupMayChangeAtAnyTime) {
  WorkerProcesses group(job_of(GetParam()), {{{0, 1, 2}, 5}, {{2, 0, 3}, 4}, {{2, 3}, kSteps}});
  const auto ends = group.run();
  // Without shared memory, nobody may hear of the last piece of a worker that goes.
  if (GetParam().engine == "shm") {
    EXPECT_THAT(group.times_done(), Each(1));
    EXPECT_GT(ends[2].first_steps[1], 0);
  } else {
    EXPECT_THAT(group.times_done(), Each(Ge(1)));
  }
  EXPECT_EQ(ends[2].parameters, ends[3].parameters);
  // Nobody began anew: what was learned before is in the model.
  const auto anew = WorkerProcesses(job_of(GetParam()), {{{0, 1}, 0}}).run();
  EXPECT_GT(distance(ends[3].parameters, anew[0].parameters), 0.5);
}

}  // namespace
}  // namespace cohort::strategy
