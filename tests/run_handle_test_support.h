#pragma once

#include <cohort/cohort.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"

namespace cohort {

namespace fs = std::filesystem;

inline constexpr std::int64_t kSteps = 40;

inline Job small_job(std::int64_t steps = kSteps) {
  Job job;
  job.name = "handle";
  job.seed = 3;
  job.model.preset = "mlp";
  job.data.kind = "generated";
  job.data.task = "blobs";
  job.data.samples = 300;
  job.train.steps = steps;
  job.train.batch = 20;
  job.log.every_steps = 1;
  job.log.tensorboard = false;
  job.cluster.workers = 2;
  job.cluster.timeout_seconds = 60;
  return job;
}

/// A job that does not end by itself while a test looks at it.
inline Job long_job() {
  return small_job(100'000'000);
}

class RunHandle : public testing::Test {
 protected:
  RunOptions quietly(const std::string& name) const {
    return {.run_dir = (folder_.path() / name).string(), .quiet = true};
  }

  /// Polls until the run has logged a step.
  static void wait_for_a_step(cohort::Run& run, const std::atomic<std::int64_t>& steps) {
    while (steps == 0 && !run.poll()) std::this_thread::yield();
    ASSERT_GT(steps, 0);
  }

  TemporaryFolder folder_;
};

inline std::vector<pid_t> pids_of(const fs::path& run_dir) {
  const auto tasks = nlohmann::json::parse(read_file(run_dir / "tasks.json"));
  std::vector<pid_t> pids = {tasks.at("launcher").get<pid_t>()};
  for (const auto& task : tasks.at("tasks")) pids.push_back(task.at("pid").get<pid_t>());
  return pids;
}

struct Net : torch::nn::Module {
  Net() { layer = register_module("layer", torch::nn::Linear(2, 2)); }
  torch::Tensor forward(const torch::Tensor& input) { return layer(input); }
  torch::nn::Linear layer{nullptr};
};

inline Job own_job() {
  Job job = small_job();
  job.model = {};
  job.model.make = [] { return wrap(std::make_shared<Net>()); };
  const auto inputs = torch::arange(400, torch::kFloat32).reshape({200, 2}) / 400;
  const auto targets = torch::arange(200, torch::kInt64) % 2;
  job.data.own_train = std::make_shared<TensorDataset>(inputs, targets);
  job.data.own_validation = job.data.own_train;
  return job;
}

}  // namespace cohort
