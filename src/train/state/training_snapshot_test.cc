// A training written as a checkpoint and loaded again: with the same job, with others, and from
// files that are wrong. The files are real, in a folder of the test.

#include "train/state/training_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/fail.h"
#include "base/files.h"
#include "checkpoint/checkpoint_folder.h"
#include "train/state/apart_tensors.h"
#include "train/state/load_training.h"
#include "train/state/worker_file.h"

namespace cohort::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// Something of everything a model may have: tied weights, a frozen one, float buffers, a counter.
struct Net : torch::nn::Module {
  explicit Net(std::int64_t width = 5, std::int64_t fixed_width = 2) {
    first = register_module("first", torch::nn::Linear(3, width));
    norm = register_module("norm", torch::nn::BatchNorm1d(width));
    tied = register_parameter("tied", torch::ones({width, 3}));
    tied = first->weight;
    parameters_["tied"] = tied;
    fixed = register_parameter("fixed", torch::full({fixed_width}, 7.0), /*requires_grad=*/false);
  }
  torch::Tensor forward(const torch::Tensor& input) { return norm(first(input)); }

  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::Tensor tied, fixed;
};

Job job_with(const std::string& optimizer) {
  Job job;
  job.seed = 7;
  job.train.batch = 16;
  job.train.optimizer.kind = optimizer;
  return job;
}

/// The only worker of a group.
struct NobodyElse : strategy::Strategy {
  tensor::FlatSpace& space() override { throw std::logic_error("there is none"); }
  void begin_last_backward(const strategy::Vote&) override {}
  strategy::StepOutcome finish_step(const strategy::UpdatePlan&) override { return {}; }
  void sum_over_workers(collective::Numbers) override {}
  strategy::StrategyReport report() const override { return {}; }
  bool all_carry() const override { return false; }
  std::int64_t first_step() const override { return 0; }
  void save_state(tensor::TrainingState&) override {}
  void close() noexcept override {}
};

class CheckpointState : public testing::Test {
 protected:
  /// Every float a number of its own, padding zero.
  static std::vector<float> numbered(const tensor::FlatLayout& layout, float first) {
    std::vector<float> floats(layout.size);
    for (const tensor::FlatEntry& entry : layout.entries) {
      for (std::size_t i = 0; i < entry.count; ++i) floats[entry.offset + i] = first++;
    }
    return floats;
  }

  void fill(tensor::TrainingState& state, std::size_t slots) {
    const tensor::ModelLayout layout = tensor::ModelLayout::of(*model_);
    state.step = 41;
    state.updates = 40;
    state.work.next = 84;
    state.work.parts = 2;
    state.work.again = {{41, 1}};
    state.parameters = numbered(layout.parameters, 0.5f);
    state.buffers = numbered(layout.buffers, 100.25f);
    state.slots.clear();
    for (std::size_t slot = 0; slot < slots; ++slot) {
      state.slots.push_back(numbered(layout.parameters, 1000.0f * static_cast<float>(slot + 1)));
    }
  }

  checkpoint::Checkpoint save(const Job& job, std::size_t slots) {
    fill(snapshot_.state(), slots);
    snapshot_.describe(*model_, job, {.samples = 70, .workers = 3});
    return checkpoint::Checkpoint(
        checkpoint::CheckpointFolder(folder_.path()).write(snapshot_.content()));
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Model> model_ = wrap(std::make_shared<Net>());
  TrainingSnapshot snapshot_;
};

TEST_F(CheckpointState, WhatWasSavedIsLoaded) {
  const Job job = job_with("adam");
  const auto loaded = load_training(save(job, 2), *model_, job, 70);
  const tensor::TrainingState& saved = snapshot_.state();
  EXPECT_THAT(loaded.notes, IsEmpty());
  EXPECT_EQ(loaded.state.step, 41);
  EXPECT_EQ(loaded.state.updates, 40);
  EXPECT_EQ(loaded.state.work.next, 84);
  EXPECT_EQ(loaded.state.work.parts, 2);
  ASSERT_EQ(loaded.state.work.again.size(), 1u);
  EXPECT_EQ(loaded.state.work.again[0].step, 41);
  EXPECT_EQ(loaded.state.work.again[0].part, 1);
  EXPECT_EQ(loaded.state.parameters, saved.parameters);
  EXPECT_EQ(loaded.state.buffers, saved.buffers);
  EXPECT_EQ(loaded.state.slots, saved.slots);
  EXPECT_TRUE(loaded.state.own.empty());
}

// docs/checkpoints.md, "What a resume loses": to be turned round when they are restored.
TEST_F(CheckpointState, FrozenTensorsAndCountersAreRestored) {
  const Job job = job_with("adam");
  const auto saved = std::make_shared<Net>();
  saved->fixed.fill_(-0.0);
  saved->norm->num_batches_tracked.fill_(5);
  model_ = wrap(saved);
  const checkpoint::Checkpoint checkpoint = save(job, 2);
  const auto net = std::make_shared<Net>();
  const auto model = wrap(net);
  const tensor::TrainingState state = load_training(checkpoint, *model, job, 70).state;
  EXPECT_THAT(state.apart, testing::SizeIs(2)) << "tied weights are the strategy's";
  NobodyElse alone;
  share_apart(*model, alone, &state, true);
  EXPECT_TRUE(torch::equal(net->fixed, torch::zeros({2})));
  EXPECT_TRUE(std::signbit(net->fixed[0].item<float>())) << "to the bit";
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 5);
}

TEST_F(CheckpointState, AFrozenTensorOfAnotherShapeIsRefused) {
  const Job job = job_with("sgd");
  const checkpoint::Checkpoint checkpoint = save(job, 0);
  const auto net = std::make_shared<Net>(5, 3);
  EXPECT_THAT(
      [&] { load_training(checkpoint, *wrap(net), job, 70); },
      testing::ThrowsMessage<Error>(HasSubstr("\"fixed\" has the shape [2] instead of [3]")));
}

TEST_F(CheckpointState, EveryWorkersOwnStateIsReadAsItWasWritten) {
  Job job = job_with("adam");
  const StateNames names = StateNames::of(*model_, job);
  tensor::TrainingState state;
  fill(state, 2);
  state.own = {.meaning = "mine", .floats = {{1, 2}, {}}, .doubles = {0.5}, .numbers = {7}};
  state.link = {.meaning = "ours", .floats = {{3}}, .doubles = {}, .numbers = {}};
  const checkpoint::CheckpointContent::File file = worker_file(3, state, names);
  checkpoint::CheckpointContent content;
  content.files = {file};
  content.state = "{}";
  const checkpoint::Checkpoint checkpoint(
      checkpoint::CheckpointFolder(folder_.path()).write(content));
  const tensor::TrainingState read = read_worker_file(checkpoint, 3, names);
  EXPECT_EQ(read.own, state.own);
  EXPECT_EQ(read.link, state.link);
  EXPECT_EQ(read.parameters, state.parameters);
  EXPECT_EQ(read.buffers, state.buffers);
  EXPECT_EQ(read.slots, state.slots);
  EXPECT_EQ(read.step, state.step);
  EXPECT_EQ(read.updates, state.updates);
  EXPECT_EQ(read.work.next, state.work.next);
  EXPECT_EQ(read.work.again, state.work.again);
}

TEST_F(CheckpointState, AWorkersFileOfAnotherModelIsRefused) {
  const Job job = job_with("sgd");
  tensor::TrainingState state;
  fill(state, 0);
  checkpoint::CheckpointContent content;
  content.files = {worker_file(1, state, StateNames::of(*model_, job))};
  content.state = "{}";
  const checkpoint::Checkpoint checkpoint(
      checkpoint::CheckpointFolder(folder_.path()).write(content));
  const auto other = wrap(std::make_shared<Net>(6));
  EXPECT_THAT([&] { read_worker_file(checkpoint, 1, StateNames::of(*other, job)); },
              testing::ThrowsMessage<Error>(HasSubstr("worker-1.safetensors is of another model")));
}

TEST_F(CheckpointState, TheModelFileHasEveryTensorByTheModelsOwnNames) {
  const checkpoint::Checkpoint checkpoint = save(job_with("sgd"), 0);
  const checkpoint::SafetensorsFile file = checkpoint.tensors("model.safetensors");
  std::vector<std::string> names;
  for (const checkpoint::StoredTensor& tensor : file.tensors()) names.push_back(tensor.name);
  EXPECT_THAT(names, UnorderedElementsAre("first.weight", "first.bias", "norm.weight", "norm.bias",
                                          "tied", "fixed", "norm.running_mean", "norm.running_var",
                                          "norm.num_batches_tracked"));
  EXPECT_THAT(file.tensor("first.weight").shape, ElementsAre(5, 3));
  EXPECT_TRUE(std::ranges::equal(file.floats("tied"), file.floats("first.weight")));
  EXPECT_THAT(file.floats("fixed"), ElementsAre(7, 7));
  EXPECT_THAT(file.integers("norm.num_batches_tracked"), ElementsAre(0));
}

TEST_F(CheckpointState, OptimizerSlotsAreNamedAfterTheirParameters) {
  Job job = job_with("sgd");
  job.train.optimizer.momentum = 0.9;
  const checkpoint::Checkpoint checkpoint = save(job, 1);
  const checkpoint::SafetensorsFile file = checkpoint.tensors("optimizer.safetensors");
  std::vector<std::string> names;
  for (const checkpoint::StoredTensor& tensor : file.tensors()) names.push_back(tensor.name);
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) EXPECT_THAT(name, testing::StartsWith("momentum/"));
  EXPECT_THAT(names, testing::Contains("momentum/norm.bias"));
  EXPECT_THAT(names, testing::Not(testing::Contains("momentum/fixed")));
}

TEST_F(CheckpointState, TheTextSaysWhereTheTrainingIs) {
  const auto text = nlohmann::json::parse(save(job_with("adam"), 2).state());
  EXPECT_EQ(text.at("format"), 2);
  EXPECT_EQ(text.at("step"), 41);
  // 70 samples are 5 batches of at most 16, so step 41 is the first of epoch 8.
  EXPECT_EQ(text.at("epoch"), 8);
  EXPECT_EQ(text.at("offset"), 16);
  EXPECT_EQ(text.at("seed"), 7);
  EXPECT_EQ(text.at("batch"), 16);
  EXPECT_EQ(text.at("samples"), 70);
  EXPECT_EQ(text.at("optimizer"), "adam");
  EXPECT_EQ(text.at("workers"), 3);
  EXPECT_EQ(text.at("work").at("again"), nlohmann::json::parse("[[41, 1]]"));
  EXPECT_TRUE(text.at("random").is_string());
  EXPECT_TRUE(text.at("versions").contains("libtorch"));
}

TEST_F(CheckpointState, SlotsThatAreAllZeroNeedNotBeThere) {
  const Job job = job_with("adam");
  const auto loaded = load_training(save(job, 0), *model_, job, 70);
  EXPECT_THAT(loaded.state.slots, IsEmpty());
  EXPECT_THAT(loaded.notes, IsEmpty());
  EXPECT_EQ(loaded.state.updates, 40);
}

TEST_F(CheckpointState, AnotherOptimizerTakesTheParametersAndSaysSo) {
  const auto loaded = load_training(save(job_with("adam"), 2), *model_, job_with("adagrad"), 70);
  EXPECT_EQ(loaded.state.parameters, snapshot_.state().parameters);
  EXPECT_THAT(loaded.state.slots, IsEmpty());
  EXPECT_EQ(loaded.state.updates, 0) << "Adam's bias correction must begin anew with its moments";
  EXPECT_THAT(loaded.notes, ElementsAre(testing::AllOf(HasSubstr("adam"), HasSubstr("adagrad"))));
}

TEST_F(CheckpointState, MomentumThatIsSwitchedOnBeginsAtZero) {
  Job with_momentum = job_with("sgd");
  with_momentum.train.optimizer.momentum = 0.9;
  const auto loaded = load_training(save(job_with("sgd"), 0), *model_, with_momentum, 70);
  EXPECT_THAT(loaded.state.slots, IsEmpty());
  EXPECT_THAT(loaded.notes, ElementsAre(HasSubstr("momentum")));
}

TEST_F(CheckpointState, OtherSettingsAreNotesAndNoObstacle) {
  Job other = job_with("sgd");
  other.seed = 8;
  other.train.batch = 32;
  const auto loaded = load_training(save(job_with("sgd"), 0), *model_, other, 71);
  EXPECT_EQ(loaded.state.step, 41);
  EXPECT_THAT(loaded.notes, ElementsAre(HasSubstr("job.seed 7, this job has 8"),
                                        HasSubstr("train.batch 16, this job has 32"),
                                        HasSubstr("samples of 70, this job has 71")));
}

TEST_F(CheckpointState, WhatOneWorkerHasIsForTheSameStrategyOnly) {
  Job job = job_with("sgd");
  job.strategy.compression.kind = "topk";
  snapshot_.state().own = {.meaning = "a rest",
                           .floats = {{1, 2, 3}, {}, {4}},
                           .doubles = {0.1},
                           .numbers = {std::numeric_limits<std::int64_t>::min(), 7}};
  const checkpoint::Checkpoint checkpoint = save(job, 0);
  EXPECT_EQ(load_training(checkpoint, *model_, job, 70).state.own, snapshot_.state().own);
  EXPECT_TRUE(load_training(checkpoint, *model_, job_with("sgd"), 70).state.own.empty());
}

TEST_F(CheckpointState, WhatDoesNotSayItsMeaningIsLeftOut) {
  snapshot_.state().own = {.meaning = "a rest", .floats = {{1, 2, 3}}};
  fill(snapshot_.state(), 0);
  const Job job = job_with("sgd");
  snapshot_.describe(*model_, job, {.samples = 70, .workers = 3});
  checkpoint::CheckpointContent content = snapshot_.content();
  content.files.back().metadata.clear();
  const checkpoint::Checkpoint checkpoint(
      checkpoint::CheckpointFolder(folder_.path()).write(content));
  const auto loaded = load_training(checkpoint, *model_, job, 70);
  EXPECT_TRUE(loaded.state.own.empty());
  EXPECT_THAT(loaded.notes, ElementsAre(HasSubstr("does not say what it means")));
}

/// What load_training says against a model.
std::string objection(const checkpoint::Checkpoint& checkpoint, Model& model) {
  try {
    load_training(checkpoint, model, job_with("sgd"), 70);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
    return error.what();
  }
  return "";
}

TEST_F(CheckpointState, AnotherModelIsRefusedByTheNameOfTheTensor) {
  const checkpoint::Checkpoint checkpoint = save(job_with("sgd"), 0);
  const auto wider = wrap(std::make_shared<Net>(6));
  EXPECT_THAT(objection(checkpoint, *wider),
              testing::AllOf(HasSubstr("tied"), HasSubstr("[5, 3]"), HasSubstr("[6, 3]"),
                             HasSubstr(checkpoint.path().string())));

  const auto more = std::make_shared<Net>();
  more->register_parameter("more", torch::zeros({4}));
  EXPECT_THAT(objection(checkpoint, *wrap(more)), HasSubstr("no tensor \"more\" of shape [4]"));

  // Equal but for the norm, which the other model does not have.
  struct Fewer : torch::nn::Module {
    Fewer() { first = register_module("first", torch::nn::Linear(3, 5)); }
    torch::Tensor forward(const torch::Tensor& input) { return first(input); }
    torch::nn::Linear first{nullptr};
  };
  EXPECT_THAT(objection(checkpoint, *wrap(std::make_shared<Fewer>())),
              HasSubstr("is not in this job's model"));
}

/// Whoever wrote the checkpoint made its manifest too, so its checksums are right.
TEST_F(CheckpointState, TensorsOfTheOptimizerThatDoNotFitAreRefused) {
  const Job job = job_with("adam");
  fill(snapshot_.state(), 2);
  snapshot_.describe(*model_, job, {.samples = 70, .workers = 3});
  const checkpoint::CheckpointContent right = snapshot_.content();
  const std::vector<float> many(100'000, 1.0f);
  const auto with = [&](const checkpoint::TensorView& tensor) {
    checkpoint::CheckpointContent content = right;
    content.files[1].tensors[0] = tensor;
    return checkpoint::Checkpoint(checkpoint::CheckpointFolder(folder_.path()).write(content));
  };
  const std::string name = right.files[1].tensors[0].name;
  for (const checkpoint::TensorView& wrong :
       {checkpoint::TensorView{name, {100'000}, std::span(many)},
        checkpoint::TensorView{name, {1}, std::span(many).first(1)},
        checkpoint::TensorView{"m/other", {2}, std::span(many).first(2)}}) {
    const checkpoint::Checkpoint checkpoint = with(wrong);
    EXPECT_THROW(load_training(checkpoint, *model_, job, 70), Error) << wrong.name;
  }
}

TEST_F(CheckpointState, MoreFloatsThanThereIsUseForAreNotRead) {
  Job job = job_with("sgd");
  const std::vector<float> many(3 << 20);
  snapshot_.state().own = {.meaning = "a rest", .floats = {many}};
  const checkpoint::Checkpoint checkpoint = save(job, 0);
  EXPECT_THAT(objection(checkpoint, *model_), HasSubstr("3145728 floats"));
}

TEST_F(CheckpointState, AStateOfAnotherStepThanItsManifestIsRefused) {
  fill(snapshot_.state(), 0);
  snapshot_.describe(*model_, job_with("sgd"), {.samples = 70, .workers = 3});
  checkpoint::CheckpointContent content = snapshot_.content();
  content.step = 7;
  const checkpoint::Checkpoint checkpoint(
      checkpoint::CheckpointFolder(folder_.path()).write(content));
  EXPECT_THROW(load_training(checkpoint, *model_, job_with("sgd"), 70), Error);
}

TEST_F(CheckpointState, AStateThatDoesNotFitTheModelIsNotWritten) {
  fill(snapshot_.state(), 1);
  EXPECT_THROW(snapshot_.describe(*model_, job_with("adam"), {}), Error);
  fill(snapshot_.state(), 2);
  snapshot_.state().parameters.pop_back();
  EXPECT_THROW(snapshot_.describe(*model_, job_with("adam"), {}), Error);
}

}  // namespace
}  // namespace cohort::training
