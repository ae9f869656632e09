// What a run leaves of models whose code is not in its folder: a program's own module, and
// TorchScript.

#include <cohort/cohort.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <numeric>

#include "base/files.h"

namespace cohort::training {
namespace {

using ::testing::HasSubstr;

struct Halves : torch::nn::Module {
  Halves() {
    first = register_module("first", torch::nn::Linear(4, 6));
    norm = register_module("norm", torch::nn::BatchNorm1d(6));
    second = register_module("second", torch::nn::Linear(6, 3));
  }
  torch::Tensor forward(const torch::Tensor& input) {
    return second(torch::tanh(norm(first(input))));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

Job small_own_job() {
  Job job;
  job.name = "artefact";
  torch::manual_seed(3);
  job.data.own_train =
      std::make_shared<TensorDataset>(torch::randn({40, 4}), torch::randint(0, 3, {40}));
  job.data.own_validation =
      std::make_shared<TensorDataset>(torch::randn({23, 4}), torch::randint(0, 3, {23}));
  job.train.steps = 6;
  job.train.batch = 10;
  job.log.tensorboard = false;
  job.cluster.workers = 2;
  return job;
}

template <class Call>
std::string said_by(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

double accuracy_of(LoadedModel& model, const Dataset& dataset) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  const Batch batch = dataset.gather(all);
  const auto right = model.forward(batch.input).argmax(1).eq(batch.target).sum();
  return right.item<double>() / static_cast<double>(dataset.size());
}

TEST(TrainedArtefact, OfAProgramsOwnModuleIsLoadedWithIt) {
  const auto make = [] { return wrap(std::make_shared<Halves>()); };
  Job job = small_own_job();
  job.model.make = make;
  job.train.own_loss = [](const torch::Tensor& output, const torch::Tensor& wanted) {
    return torch::nn::functional::cross_entropy(output, wanted);
  };
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  const Summary summary = train(job, {.run_dir = run, .quiet = true});
  ASSERT_EQ(summary.status, "completed");
  EXPECT_THAT(said_by([&] { load_model(run); }), HasSubstr("a program's own module"));
  LoadedModel model = load_model(run, make);
  EXPECT_EQ(accuracy_of(model, *job.data.own_validation), summary.accuracy);
  const Prediction prediction = model.predict(NumberRow{1, -1, 0.5, 2});
  EXPECT_EQ(prediction.class_name, std::to_string(prediction.class_id));
  EXPECT_EQ(prediction.scores.size(), 3u);
  EXPECT_THAT(said_by([&] {
                load_model(run, [] { return wrap(std::make_shared<torch::nn::LinearImpl>(4, 3)); });
              }),
              HasSubstr("are of another model"));
}

TEST(TrainedArtefact, OfATorchScriptFileIsLoadedWithThatFile) {
  const TemporaryFolder folder;
  const std::string script = (folder.path() / "net.pt").string();
  torch::jit::Module net("Net");
  net.register_parameter("weight", torch::full({3, 4}, 0.1F).requires_grad_(), false);
  net.register_attribute("training", torch::jit::BoolType::get(), true);
  net.define("def forward(self, input):\n    return torch.matmul(input, self.weight.t())\n");
  net.save(script);
  Job job = small_own_job();
  job.model.torchscript = script;
  const std::string run = (folder.path() / "run").string();
  const Summary summary = train(job, {.run_dir = run, .quiet = true});
  ASSERT_EQ(summary.status, "completed");
  EXPECT_THAT(said_by([&] { load_model(run); }), HasSubstr("name the file that was trained"));
  LoadedModel model = load_torchscript_model(run, script);
  EXPECT_EQ(accuracy_of(model, *job.data.own_validation), summary.accuracy);
  const std::string other = (folder.path() / "other.pt").string();
  write_file_atomically(other, read_file(script) + " ");
  EXPECT_THAT(said_by([&] { load_torchscript_model(run, other); }),
              HasSubstr("is not the TorchScript file"));
}

}  // namespace
}  // namespace cohort::training
