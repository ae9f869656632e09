// Proves that a model in flat memory computes with the values and gradients that stand there, that
// the first gradient of a step overwrites and later ones add, and that each parameter is reported
// ready once. The net is torch's own, so gradients come by the hook, not by sinks.
#include "tensor/flat_space.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/memory.h"
#include "tensor/gradient_sink.h"

namespace cohort::tensor {
namespace {

struct Net : torch::nn::Module {
  Net() {
    used = register_module("used", torch::nn::Linear(3, 2));
    unused = register_module("unused", torch::nn::Linear(3, 2));
    running = register_buffer("running", torch::full({5}, 0.5));
    counter = register_buffer("counter", torch::zeros({1}, torch::kInt64));
  }
  torch::Tensor forward(const torch::Tensor& input) { return used(input); }

  torch::nn::Linear used{nullptr}, unused{nullptr};
  torch::Tensor running, counter;
};

class FlatSpaceTest : public ::testing::Test {
 protected:
  FlatSpaceTest()
      : model_(wrap(net_)),
        layout_(ModelLayout::of(*model_)),
        memory_((2 * layout_.parameters.size + layout_.buffers.size) * sizeof(float)),
        flat_{
            .parameters = memory_.floats().first(layout_.parameters.size),
            .gradients = memory_.floats().subspan(layout_.parameters.size, layout_.parameters.size),
            .buffers = memory_.floats().last(layout_.buffers.size)} {}

  void backward(FlatSpace& space, float factor) {
    space.begin_last_backward();
    (net_->forward(torch::ones({4, 3})).sum() * factor).backward();
  }

  std::vector<float> gradient(std::size_t parameter) const {
    const FlatEntry& entry = layout_.parameters.entries[parameter];
    const auto values = flat_.gradients.subspan(entry.offset, entry.count);
    return {values.begin(), values.end()};
  }

  std::shared_ptr<Net> net_ = std::make_shared<Net>();
  std::unique_ptr<Model> model_;
  ModelLayout layout_;
  os::PrivateMemory memory_;
  FlatMemory flat_;
};

TEST_F(FlatSpaceTest, LaysTensorsOutOnCacheLines) {
  ASSERT_EQ(layout_.parameters.entries.size(), 4U);
  EXPECT_EQ(layout_.parameters.entries[0].name, "used.weight");
  for (const FlatEntry& entry : layout_.parameters.entries) EXPECT_EQ(entry.offset % 16, 0U);
  EXPECT_EQ(layout_.parameters.size, 64U);
  ASSERT_EQ(layout_.buffers.entries.size(), 1U) << "integer buffers stay where they are";
  EXPECT_EQ(layout_.buffers.entries[0].name, "running");
}

TEST_F(FlatSpaceTest, TensorsBecomeViewsWithTheirValues) {
  const torch::Tensor before = net_->used->weight.detach().clone();
  copy_values(*model_, flat_);
  const FlatSpace space(*model_, flat_);
  EXPECT_TRUE(net_->used->weight.equal(before));
  EXPECT_EQ(net_->used->weight.data_ptr<float>(), flat_.parameters.data());
  flat_.parameters[0] = 42;
  EXPECT_EQ(net_->used->weight[0][0].item<float>(), 42);
  EXPECT_EQ(net_->running.data_ptr<float>(), flat_.buffers.data());
  EXPECT_EQ(flat_.buffers[4], 0.5F);
}

TEST_F(FlatSpaceTest, TheFirstGradientOverwritesAndLaterOnesAdd) {
  copy_values(*model_, flat_);
  FlatSpace space(*model_, flat_);
  for (int step = 0; step < 2; ++step) {
    space.begin_step();
    backward(space, 1);
    EXPECT_THAT(gradient(1), ::testing::Each(4.0F)) << "nothing of the step before is left";
    backward(space, 0.5);
    EXPECT_THAT(gradient(1), ::testing::Each(6.0F));
    space.finish_step();
  }
}

TEST_F(FlatSpaceTest, ParametersWithoutGradientGetZeros) {
  copy_values(*model_, flat_);
  FlatSpace space(*model_, flat_);
  std::ranges::fill(flat_.gradients, 7.0F);
  space.begin_step();
  backward(space, 1);
  space.finish_step();
  EXPECT_THAT(gradient(2), ::testing::Each(0.0F));
  EXPECT_THAT(gradient(0), ::testing::Each(4.0F));
}

TEST_F(FlatSpaceTest, AGradientThatWasToComeAsFactorsIsRefused) {
  copy_values(*model_, flat_);
  FlatSpace space(*model_, flat_);
  space.sink(1).keep_factors();
  space.begin_step();
  EXPECT_THROW(backward(space, 1), Error);  // torch::nn::Linear leaves none.
}

TEST_F(FlatSpaceTest, EveryParameterIsReadyOnce) {
  copy_values(*model_, flat_);
  FlatSpace space(*model_, flat_);
  std::vector<std::size_t> ready;
  space.on_gradient_ready([&](std::size_t index) { ready.push_back(index); });
  space.begin_step();
  backward(space, 1);
  EXPECT_THAT(ready, ::testing::UnorderedElementsAre(0, 1));
  space.finish_step();
  EXPECT_THAT(ready, ::testing::UnorderedElementsAre(0, 1, 2, 3));
}

TEST_F(FlatSpaceTest, ALayerMayWriteToTheSinkItself) {
  copy_values(*model_, flat_);
  FlatSpace space(*model_, flat_);
  GradientSink* sink = GradientSink::of(net_->used->bias);
  ASSERT_NE(sink, nullptr);
  space.begin_step();
  EXPECT_EQ(sink->beta_for_write(), 0);
  EXPECT_EQ(sink->beta_for_write(), 1);
  EXPECT_EQ(GradientSink::of(torch::ones({2})), nullptr);
}

}  // namespace
}  // namespace cohort::tensor
