// Workers that are threads of one process.

#include <cohort/cohort.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "train/train_test_support.h"

namespace cohort::training {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr double kTimeoutSeconds = 4;

struct OneLayer : torch::nn::Module {
  OneLayer() { linear = register_module("linear", torch::nn::Linear(784, 10)); }
  torch::Tensor forward(const torch::Tensor& input) { return linear(input.flatten(1)); }

  torch::nn::Linear linear{nullptr};
};

/// Threads that make their models one after the other; the later ones do `first` what is asked.
Job in_graph_job(const std::function<void()>& first) {
  Job job = small_digits_job({});
  job.train.steps = 3;
  job.cluster.workers = 2;
  job.cluster.replication = "in-graph";
  job.cluster.timeout_seconds = kTimeoutSeconds;
  const auto maker = std::make_shared<std::atomic<pid_t>>(0);
  job.model.make = [first, maker] {
    if (maker->exchange(::getpid()) == ::getpid()) first();
    return wrap(std::make_shared<OneLayer>());
  };
  return job;
}

// Being slow is not being stuck: it is waited for as a process would be.
TEST(InGraph, WaitsForAThreadThatTakesLongToMakeItsModel) {
  const auto model = train_for_test(in_graph_job(
      [] { std::this_thread::sleep_for(std::chrono::duration<double>(1.5 * kTimeoutSeconds)); }));
  EXPECT_EQ(model.summary.status, "completed");
  EXPECT_EQ(model.summary.steps, 3);
}

TEST(InGraph, DoesNotWaitForAThreadThatFails) {
  const Job job = in_graph_job([] { throw std::runtime_error("no such model"); });
  const TemporaryFolder folder;
  const auto summary = train(job, {.run_dir = (folder.path() / "run").string(), .quiet = true});
  EXPECT_EQ(summary.status, "failed");
  ASSERT_FALSE(summary.failures.empty());
  EXPECT_THAT(summary.failures.front(), HasSubstr("no such model"));
  EXPECT_THAT(summary.failures, Contains(HasSubstr("a task was lost while others waited")));
}

}  // namespace
}  // namespace cohort::training
