// A program's own module, dataset and loss, and what DDP hangs on: parameters that get no gradient
// in a step, and workers without samples.

#include <cohort/cohort.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/train_test_support.h"

namespace cohort::training {
namespace {

// Its second branch is used only when the first sample's first feature is positive, so in one step
// some workers have a gradient for it and others have not.
struct Branching : torch::nn::Module {
  Branching() {
    first = register_module("first", torch::nn::Linear(4, 3));
    second = register_module("second", torch::nn::Linear(4, 3));
    never = register_module("never", torch::nn::Linear(4, 3));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor output = first(input);
    if (input[0][0].item<float>() > 0) output = output + second(input);
    return output;
  }

  torch::nn::Linear first{nullptr}, second{nullptr}, never{nullptr};
};

Job own_job(int workers, const std::string& engine) {
  Job job;
  job.name = "own";
  job.model.make = [] { return wrap(std::make_shared<Branching>()); };
  torch::manual_seed(3);
  const auto input = torch::randn({17, 4});
  const auto target = torch::randint(0, 3, {17});
  job.data.own_train = std::make_shared<TensorDataset>(input, target);
  job.data.own_validation = job.data.own_train;
  job.train.own_loss = [](const torch::Tensor& output, const torch::Tensor& wanted) {
    return torch::nn::functional::cross_entropy(output, wanted);
  };
  job.train.steps = 12;
  job.train.batch = 8;  // The third batch of an epoch has one sample.
  job.train.optimizer.momentum = 0.9;
  job.log.tensorboard = false;
  job.cluster.workers = workers;
  job.cluster.engine = engine;
  job.cluster.replication = engine == "inproc" ? "in-graph" : "between-graph";
  return job;
}

class OwnModel : public ::testing::TestWithParam<std::string> {};

TEST_P(OwnModel, TrainsWithUnusedParametersAndWorkersWithoutSamples) {
  const auto result = train_for_test(own_job(3, GetParam()));
  EXPECT_EQ(result.summary.status, "completed");
  EXPECT_EQ(result.summary.steps, 12);
  EXPECT_EQ(result.summary.samples, 4 * 17);
  EXPECT_TRUE(result.tensors.contains("second.weight"));
  EXPECT_TRUE(result.summary.accuracy.has_value());
}

TEST_P(OwnModel, AnUnusedParameterKeepsItsFirstValue) {
  const auto result = train_for_test(own_job(2, GetParam()));
  torch::manual_seed(own_job(2, GetParam()).seed);
  const auto fresh = std::make_shared<Branching>();
  const float* expected = fresh->never->weight.data_ptr<float>();
  EXPECT_THAT(result.tensors.at("never.weight"),
              ::testing::ElementsAreArray(expected, expected + 12));
}

INSTANTIATE_TEST_SUITE_P(Engines, OwnModel, ::testing::Values("shm", "gloo", "inproc"),
                         [](const auto& test) { return test.param; });

// A frozen layer, and one weight under two names.
struct TiedAndFrozen : torch::nn::Module {
  TiedAndFrozen() {
    frozen = register_module("frozen", torch::nn::Linear(4, 3));
    for (auto& parameter : frozen->parameters()) parameter.set_requires_grad(false);
    once = register_parameter("once", torch::full({3, 3}, 0.1F));
    again = register_parameter("again", once);
  }

  torch::Tensor forward(const torch::Tensor& input) {
    return frozen(input).matmul(once).tanh().matmul(again);
  }

  torch::nn::Linear frozen{nullptr};
  torch::Tensor once, again;
};

TEST(OwnModel, FrozenWeightsStayAndTiedWeightsLearnAsOne) {
  Job alone = own_job(1, "auto");
  alone.model.make = [] { return wrap(std::make_shared<TiedAndFrozen>()); };
  alone.train.optimizer.weight_decay = 0.1;
  const auto first = train_for_test(alone);
  torch::manual_seed(alone.seed);
  const auto fresh = std::make_shared<TiedAndFrozen>();
  const float* frozen = fresh->frozen->weight.data_ptr<float>();
  EXPECT_THAT(first.tensors.at("frozen.weight"), ::testing::ElementsAreArray(frozen, frozen + 12));
  EXPECT_EQ(first.tensors.at("once"), first.tensors.at("again"));
  EXPECT_THAT(first.tensors.at("once"), ::testing::Not(::testing::Contains(0.1F)));

  Job together = alone;
  together.cluster.workers = 2;
  EXPECT_LE(distance(first, train_for_test(together)), 1e-5);
}

TEST(OwnModel, AnExceptionInItIsTheRunsFailure) {
  Job job = own_job(2, "shm");
  job.train.own_loss = [](const torch::Tensor&, const torch::Tensor&) -> torch::Tensor {
    throw std::runtime_error("no such loss");
  };
  const TemporaryFolder folder;
  const auto summary = train(job, {.run_dir = (folder.path() / "run").string(), .quiet = true});
  EXPECT_EQ(summary.status, "failed");
  EXPECT_EQ(summary.exit_code, 1);
  ASSERT_FALSE(summary.failures.empty());
  EXPECT_THAT(summary.failures.front(), ::testing::HasSubstr("no such loss"));
}

TEST(OwnModel, ALossThatIsNotFiniteStopsTheRunAndKeepsTheLastGoodModel) {
  Job job = own_job(2, "shm");
  job.train.validate = "never";  // Or validation would count as a step.
  job.train.own_loss = [step = 0](const torch::Tensor& output,
                                  const torch::Tensor& wanted) mutable {
    const auto loss = torch::nn::functional::cross_entropy(output, wanted);
    return ++step == 5 ? loss / 0 : loss;
  };
  const TemporaryFolder folder;
  const auto run_dir = folder.path() / "run";
  const auto summary = train(job, {.run_dir = run_dir.string(), .quiet = true});
  EXPECT_EQ(summary.status, "failed");
  EXPECT_EQ(summary.exit_code, 1);
  EXPECT_THAT(summary.failures.front(), ::testing::HasSubstr("loss of step 5 is not a finite"));
  const auto kept = checkpoint::read_safetensors(run_dir / "model.safetensors");
  EXPECT_EQ(kept.metadata().at("step"), "4");
}

}  // namespace
}  // namespace cohort::training
