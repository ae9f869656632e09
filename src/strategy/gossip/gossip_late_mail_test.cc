// Gossip of gradients: what a worker is told after its last turn, or without ever having one, moves
// its model as far as those who told it have moved theirs.

#include <cohort/error.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <functional>
#include <thread>

#include "optimizer/optimizer.h"
#include "strategy/dealt_state.h"
#include "strategy/make_strategy.h"
#include "strategy/own_memory_forms.h"
#include "transport/engine_test_support.h"
#include "transport/inproc/inproc.h"

namespace cohort::strategy {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr std::int64_t kWeights = 64;

/// The gradient of its output does not depend on the weights: the sum of all gradients, each by its
/// rate, is what the weights must have moved by, in whatever order and on whichever worker.
struct StraightNet : torch::nn::Module {
  StraightNet() { weights = register_parameter("weights", torch::zeros({kWeights})); }
  torch::Tensor forward(const torch::Tensor& input) { return torch::dot(input, weights); }

  torch::Tensor weights;
};

/// Of every piece of work.
torch::Tensor input() {
  return torch::arange(1, 1 + kWeights, torch::kFloat);
}

struct Plan {
  std::int64_t steps = 1;
  std::int64_t parts = 1;
  std::string compression = "none";
  std::function<double(std::int64_t)> rate = [](std::int64_t) { return 0.5; };
};

const OptimizerOptions kSgd = {.kind = "sgd", .lr = 1};

/// One worker, from its model on.
class Peer {
 public:
  Peer(const Plan& plan, transport::Engine& engine, cluster::Store& store,
       const tensor::TrainingState* start = nullptr)
      : plan_(plan), strategy_(make(engine, store, start)) {}

  /// Makes the next piece; false when there is none.
  bool work() {
    const auto claim = strategy_->work()->next_work();
    if (!claim) return false;
    strategy_->space().begin_step();
    const auto loss = net_->forward(input()) / plan_.parts;
    strategy_->begin_last_backward({.loss = loss.item<double>()});
    loss.backward();
    strategy_->finish_step({.lr = plan_.rate(claim->step), .step = claim->step});
    return true;
  }

  Strategy& strategy() { return *strategy_; }

  std::vector<float> weights() {
    const auto all = strategy_->space().memory().parameters.first(kWeights);
    return {all.begin(), all.end()};
  }

 private:
  std::unique_ptr<Strategy> make(transport::Engine& engine, cluster::Store& store,
                                 const tensor::TrainingState* start) {
    StrategyOptions options;
    options.kind = "gossip";
    options.send = "gradients";
    options.compression.kind = plan_.compression;
    options.compression.ratio = 0.1;
    return make_gradient_gossip({.model = *model_,
                                 .engine = engine,
                                 .store = store,
                                 .optimizer = *optimizer_,
                                 .phases = phases_,
                                 .options = options,
                                 .optimizer_options = kSgd,
                                 .start = start,
                                 .seed = 3,
                                 .steps = plan_.steps,
                                 .parts = plan_.parts,
                                 .timeout = std::chrono::seconds(60)});
  }

  const Plan& plan_;
  std::shared_ptr<StraightNet> net_ = std::make_shared<StraightNet>();
  std::unique_ptr<Model> model_ = wrap(net_);
  std::unique_ptr<optimizer::Optimizer> optimizer_ = optimizer::make_optimizer(kSgd);
  PhaseClock phases_;
  std::unique_ptr<Strategy> strategy_;
};

/// A group of workers, a thread each.
void run_group(int world, const std::function<void(transport::Engine&, cluster::Store&)>& worker) {
  transport::InprocHub hub(world);
  cluster::MemoryStore store;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        worker(*hub.engine(rank), store);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
}

/// Where all pieces of these steps are applied, each by its step's rate.
std::vector<float> weights_after(const Plan& plan, std::int64_t steps) {
  double rates = 0;
  for (std::int64_t step = 0; step < steps; ++step) rates += plan.rate(step);
  const torch::Tensor moved = -rates * input();
  return {moved.data_ptr<float>(), moved.data_ptr<float>() + kWeights};
}

/// Rates that differ from step to step, and end with 0 as those of a cosine do.
Plan falling_plan() {
  Plan plan{.steps = 20, .parts = 2};
  plan.rate = [](std::int64_t step) { return 0.05 * static_cast<double>(19 - step); };
  return plan;
}

TEST(GossipLateMail, MovesAWorkerThatMadeNoStepWhenAllMeet) {
  const Plan plan = falling_plan();
  std::barrier all_done(2);
  run_group(2, [&](transport::Engine& engine, cluster::Store& store) {
    Peer peer(plan, engine, store);
    while (engine.rank() == 0 && peer.work()) {
    }
    all_done.arrive_and_wait();
    peer.strategy().meet();
    EXPECT_THAT(peer.weights(), Pointwise(FloatNear(1e-2F), weights_after(plan, plan.steps)));
    peer.strategy().close();
  });
}

TEST(GossipLateMail, MovesAWorkerThatMadeNoStepWhenTheGroupEnds) {
  constexpr std::int64_t kSteps = 7;
  const Plan plan = falling_plan();
  std::barrier all_done(2);
  run_group(2, [&](transport::Engine& engine, cluster::Store& store) {
    Peer peer(plan, engine, store);
    for (int i = 0; engine.rank() == 0 && i < kSteps * plan.parts; ++i) peer.work();
    all_done.arrive_and_wait();
    peer.strategy().close();
    all_done.arrive_and_wait();
    tensor::TrainingState state;
    peer.strategy().carry_state(state);
    state.parameters.resize(kWeights);
    EXPECT_THAT(state.parameters, Pointwise(FloatNear(1e-2F), weights_after(plan, kSteps)));
  });
}

/// One that comes to its first turn late is told with it of steps whose rates were others.
TEST(GossipLateMail, EveryPieceCountsWithTheRateOfItsStep) {
  const Plan plan = falling_plan();
  std::barrier turn(2);
  run_group(2, [&](transport::Engine& engine, cluster::Store& store) {
    Peer peer(plan, engine, store);
    for (int i = 0; engine.rank() == 0 && i < (plan.steps - 1) * plan.parts; ++i) peer.work();
    turn.arrive_and_wait();
    while (engine.rank() == 1 && peer.work()) {
    }
    turn.arrive_and_wait();
    peer.strategy().meet();
    EXPECT_THAT(peer.weights(), Pointwise(FloatNear(1e-2F), weights_after(plan, plan.steps)));
    peer.strategy().close();
  });
}

/// Dies when it shall send or receive more than a few numbers once more than it can.
class FrailTransport : public transport::Transport {
 public:
  FrailTransport(std::unique_ptr<transport::Transport> transport, int& strength)
      : transport_(std::move(transport)), strength_(strength) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  transport::OperationPtr isend(int peer, transport::Tag tag,
                                std::span<const std::byte> bytes) override {
    die_of(bytes.size());
    return transport_->isend(peer, tag, bytes);
  }
  transport::OperationPtr irecv(int peer, transport::Tag tag, std::span<std::byte> bytes) override {
    die_of(bytes.size());
    return transport_->irecv(peer, tag, bytes);
  }
  void wait(transport::Operation& operation, Deadline deadline) override {
    transport_->wait(operation, deadline);
  }
  void close() noexcept override { transport_->close(); }
  Traffic traffic() const override { return transport_->traffic(); }

 private:
  void die_of(std::size_t bytes) const {
    if (bytes > 32 && strength_-- <= 0) throw Error(ErrorCode::io, "dies here");
  }

  std::unique_ptr<transport::Transport> transport_;
  int& strength_;
};

class FrailEngine : public transport::ForwardingEngine {
 public:
  explicit FrailEngine(transport::Engine& engine) : ForwardingEngine(engine) {}

  /// It can send or receive so many times more.
  void become_frail(int strength) { strength_ = strength; }
  bool lives() const { return strength_ >= 0; }

  std::unique_ptr<transport::Transport> connect(Deadline deadline) override {
    return std::make_unique<FrailTransport>(ForwardingEngine::connect(deadline), strength_);
  }

 private:
  int strength_ = 1'000'000;
};

/// Workers 0 and 1 have made a piece each and told the others the largest tenth of it; worker 2,
/// which has made none, dies when they have begun to come together, after so many messages. What
/// the others have then; nothing where it did not die, or too late for them.
std::vector<tensor::TrainingState> lose_one_after(int messages, const Plan& plan) {
  std::vector<tensor::TrainingState> states(2);
  std::barrier end(2);
  std::atomic<int> broken_off = 0;
  run_group(3, [&](transport::Engine& engine, cluster::Store& store) {
    FrailEngine frail(engine);
    Peer peer(plan, frail, store);
    if (engine.rank() == 2) {
      frail.become_frail(messages);
    } else {
      EXPECT_TRUE(peer.work());
    }
    try {
      peer.strategy().meet();
    } catch (const Error&) {
      if (engine.rank() != 2) ++broken_off;
    }
    peer.strategy().close();
    if (engine.rank() == 2) return;
    end.arrive_and_wait();
    peer.strategy().carry_state(states[static_cast<std::size_t>(engine.rank())]);
  });
  if (broken_off == 0) states.clear();
  return states;
}

TEST(GossipLateMail, WhatNobodyWasToldOutlivesALossWhenever) {
  const Plan plan{.steps = 1, .parts = 2, .compression = "topk"};
  int deaths = 0;
  for (;; ++deaths) {
    SCOPED_TRACE(fmt::format("after {} messages", deaths));
    const auto states = lose_one_after(deaths, plan);
    if (states.empty()) break;
    for (const int world : {2, 3}) {  // A newcomer has worker 0's model, with all that is in it.
      SCOPED_TRACE(fmt::format("{} go on", world));
      run_group(world, [&](transport::Engine& engine, cluster::Store& store) {
        const auto rank = static_cast<std::size_t>(engine.rank());
        Peer peer(plan, engine, store, rank < states.size() ? &states[rank] : nullptr);
        EXPECT_FALSE(peer.work());
        peer.strategy().meet();
        EXPECT_THAT(peer.weights(), Pointwise(FloatNear(1e-2F), weights_after(plan, 1)));
        peer.strategy().close();
      });
    }
  }
  EXPECT_GE(deaths, 4) << "in the sum of what is left, and in the average";
}

// Who goes on alone after a loss has in its model all that it has not told.
TEST(GossipLateMail, WhoIsLeftAloneHasWhatItDidNotTell) {
  const Plan plan{.steps = 1, .parts = 2, .compression = "topk"};
  const auto states = lose_one_after(0, plan);
  ASSERT_EQ(states.size(), 2U);
  run_group(1, [&](transport::Engine& engine, cluster::Store& store) {
    Peer peer(plan, engine, store, &states[0]);
    const std::vector<float> before(states[0].parameters.begin(),
                                    states[0].parameters.begin() + kWeights);
    EXPECT_EQ(peer.weights(), before);
    peer.strategy().close();
  });
}

// A checkpoint that four have written who have told each other nothing yet.
TEST(GossipLateMail, WithFewerWorkersNothingUntoldIsLostOrCountedTwice) {
  const Plan plan{.steps = 1, .parts = 4, .compression = "topk"};
  const torch::Tensor gradient = input() / 4;
  const std::vector<float> gradients(gradient.data_ptr<float>(),
                                     gradient.data_ptr<float>() + kWeights);
  tensor::TrainingState state;
  for (const float value : gradients) state.parameters.push_back(-0.5F * value);
  state.work = {.next = 4, .parts = 4, .again = {}};
  state.step = 1;
  state.own = {
      .meaning = std::string(kUntoldGradients), .floats = {gradients}, .doubles = {1, 0.5}};
  for (const int world : {1, 2, 3, 4, 6}) {
    run_group(world, [&](transport::Engine& engine, cluster::Store& store) {
      DealtState dealt({.rank = engine.rank(), .world = world, .saved = 4});
      for (int from = 0; from < 4; ++from) dealt.add(from, state);
      const tensor::TrainingState start = world == 4 ? state : dealt.take();
      Peer peer(plan, engine, store, &start);
      EXPECT_FALSE(peer.work());
      peer.strategy().meet();
      EXPECT_THAT(peer.weights(), Pointwise(FloatNear(1e-2F), weights_after(plan, 1))) << world;
      peer.strategy().close();
    });
  }
}

TEST(GossipLateMail, WhatCannotBeOfThisJobIsLeftOut) {
  const Plan plan{.steps = 1, .parts = 2, .compression = "topk"};
  for (const double pieces : {1e18, -1.0, std::nan("")}) {
    run_group(2, [&](transport::Engine& engine, cluster::Store& store) {
      tensor::TrainingState hostile;
      hostile.parameters.resize(kWeights);
      hostile.work = {.next = 2, .parts = 2, .again = {}};
      hostile.step = 1;
      hostile.own = {.meaning = std::string(kUntoldGradients),
                     .floats = {std::vector<float>(kWeights, 1)},
                     .doubles = {pieces, 0.5}};
      Peer peer(plan, engine, store, &hostile);
      EXPECT_FALSE(peer.work());
      peer.strategy().meet();
      EXPECT_THAT(peer.weights(), ::testing::Each(0.0F));
      peer.strategy().close();
    });
  }
}

// A checkpoint that two have written, gone on from by more: some begin as copies of others.
TEST(GossipLateMail, WhoBeginsAsACopyIsNotToldWhatItHas) {
  const Plan plan{.steps = 1, .parts = 2, .compression = "topk"};
  const auto states = lose_one_after(0, plan);
  ASSERT_EQ(states.size(), 2U);
  for (const int world : {1, 3, 4, 5}) {  // One alone has nobody to tell.
    SCOPED_TRACE(fmt::format("{} go on", world));
    run_group(world, [&](transport::Engine& engine, cluster::Store& store) {
      DealtState dealt({.rank = engine.rank(), .world = world, .saved = 2});
      for (const int from : {0, 1}) dealt.add(from, states[static_cast<std::size_t>(from)]);
      const tensor::TrainingState start = dealt.take();
      Peer peer(plan, engine, store, &start);
      EXPECT_FALSE(peer.work());
      peer.strategy().meet();
      EXPECT_THAT(peer.weights(), Pointwise(FloatNear(1e-2F), weights_after(plan, 1)));
      peer.strategy().close();
    });
  }
}

}  // namespace
}  // namespace cohort::strategy
