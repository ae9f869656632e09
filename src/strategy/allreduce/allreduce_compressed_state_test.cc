// What a worker with compressed gradients carries from one group to the next: what it has not sent,
// and its momentum. Groups are made of given states and asked what they have; no step is made.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "strategy/make_strategy.h"
#include "strategy/own_memory_forms.h"
#include "transport/inproc/inproc.h"

namespace cohort::strategy {
namespace {

struct TwoLayers : torch::nn::Module {
  TwoLayers() {
    first = register_parameter("first", torch::zeros({37, 20}));
    second = register_parameter("second", torch::zeros({5, 37}));
  }
  torch::Tensor forward(const torch::Tensor& input) { return input; }

  torch::Tensor first, second;
};

/// What each rank of a group has to begin with that starts from these states.
std::vector<tensor::TrainingState> states_after(
    const std::vector<const tensor::TrainingState*>& starts, double momentum = 0) {
  const auto world = static_cast<int>(starts.size());
  transport::InprocHub hub(world);
  cluster::MemoryStore store;
  std::vector<tensor::TrainingState> states(starts.size());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      const auto engine = hub.engine(rank);
      const auto net = std::make_shared<TwoLayers>();
      const auto model = wrap(net);
      const OptimizerOptions sgd{.kind = "sgd", .lr = 0.3, .momentum = momentum};
      const auto optimizer = optimizer::make_optimizer(sgd);
      PhaseClock phases;
      StrategyOptions options;
      options.compression = {.kind = "topk"};
      const auto strategy =
          make_allreduce_compressed({.model = *model,
                                     .engine = *engine,
                                     .store = store,
                                     .optimizer = *optimizer,
                                     .phases = phases,
                                     .options = options,
                                     .optimizer_options = sgd,
                                     .start = starts[static_cast<std::size_t>(rank)],
                                     .seed = 4,
                                     .steps = 20,
                                     .timeout = std::chrono::seconds(60)});
      strategy->save_state(states[static_cast<std::size_t>(rank)]);
      strategy->close();
    });
  }
  threads.clear();
  return states;
}

// A peer died when this worker was still in a step that the chief of the next group has finished.
TEST(AllreduceCompressed, WhatTravelledInAStepThatOthersFinishedIsNotSentAgain) {
  tensor::TrainingState chiefs = states_after({nullptr, nullptr})[0];
  tensor::TrainingState own = chiefs;
  const std::size_t count = own.parameters.size();
  const CompressionMemory memory{
      .compression = "topk",
      .exchange = {.rest = std::vector<float>(count, 1)},
      .if_done = collective::ExchangeMemory{.rest = std::vector<float>(count, 2)}};
  own.own = memory.as_own();
  own.step = 5;
  for (const std::int64_t step : {5, 6}) {
    chiefs.step = step;
    const tensor::TrainingState now = states_after({&chiefs, &own})[1];
    EXPECT_EQ(now.step, step);
    EXPECT_THAT(now.own.floats[0], ::testing::Each(step == 5 ? 1.0F : 2.0F));
  }
}

// Nothing of one worker travels, so the momentum it had before the codec is its optimizer's; and
// the codec's again when there are others.
TEST(AllreduceCompressed, WhoIsLeftAloneKeepsItsMomentum) {
  tensor::TrainingState state = states_after({nullptr, nullptr}, 0.9)[0];
  EXPECT_TRUE(state.slots.empty());
  const std::vector<float> velocity(state.parameters.size(), 0.25F);
  state.own = CompressionMemory{.compression = "topk", .exchange = {.velocity = velocity}}.as_own();
  state.updates = 7;
  const tensor::TrainingState alone = states_after({&state}, 0.9)[0];
  EXPECT_THAT(alone.slots, ::testing::ElementsAre(velocity));
  EXPECT_EQ(alone.updates, 7);
  const tensor::TrainingState together = states_after({&alone, nullptr}, 0.9)[0];
  EXPECT_EQ(CompressionMemory::read(&together)->exchange.velocity, velocity);
}

}  // namespace
}  // namespace cohort::strategy
