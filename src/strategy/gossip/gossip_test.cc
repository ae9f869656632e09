// Peers without a centre: what they end with, and how far it has moved.

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <limits>
#include <thread>

#include "base/random.h"
#include "optimizer/optimizer.h"
#include "strategy/strategy.h"
#include "transport/engine_test_support.h"
#include "transport/inproc/inproc.h"

namespace cohort::strategy {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kRows = 240;
constexpr std::int64_t kFeatures = 6;
constexpr std::int64_t kBatch = 24;
constexpr std::int64_t kSteps = 200;

struct RegressionNet : torch::nn::Module {
  explicit RegressionNet(int rank) {
    hidden = register_parameter("hidden", random({kFeatures, 8}, rank));
    out = register_parameter("out", random({8, 1}, rank + 100));
    seen = register_buffer("seen", torch::zeros({1}));
  }
  torch::Tensor forward(const torch::Tensor& input) {
    return torch::matmul(torch::tanh(torch::matmul(input, hidden)), out);
  }

  static torch::Tensor random(std::vector<std::int64_t> shape, int stream) {
    Random numbers(7, static_cast<std::uint64_t>(stream));
    torch::Tensor values = torch::zeros(shape);
    auto* data = values.data_ptr<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      data[i] = static_cast<float>(numbers.uniform(-0.5, 0.5));
    }
    return values;
  }

  torch::Tensor hidden, out, seen;
};

struct Data {
  torch::Tensor input = RegressionNet::random({kRows, kFeatures}, 1000);
  torch::Tensor target = torch::tanh(input.sum(1, true)) + 0.5 * input.slice(1, 0, 1);

  torch::Tensor rows(const torch::Tensor& of, const cluster::Claim& claim, int world) const {
    const std::int64_t part = kBatch / world;
    const std::int64_t begin = claim.step * kBatch % kRows + claim.part * part;
    return of.slice(0, begin, begin + part);
  }
};

struct TrainingRun {
  int world = 1;
  int parts = 0;  ///< Of a step's batch; 0: as many as workers.
  bool shared = true;
  StrategyOptions strategy = {};
  OptimizerOptions optimizer = {};
  double clip_norm = 0;
  bool even = false;     ///< Nobody is a step ahead of another: as on machines of equal speed.
  bool spoiled = false;  ///< No model that rank 1 sends is finite.
  std::int64_t stop_after = kSteps * 100;  ///< Claims after which rank 0 asks to stop.
};

struct WorkerEnd {
  std::vector<float> parameters;
  std::vector<float> buffers;
  double loss = 0;  ///< Over all data.
  std::int64_t claims = 0;
  Traffic traffic;
  bool measured_distance = false;
  double wait_before_meeting = 0;
};

double loss_of(RegressionNet& net, const Data& data) {
  const torch::NoGradGuard no_gradients;
  return torch::mse_loss(net.forward(data.input), data.target).item<double>();
}

/// Where workers of equal speed meet before every step.
using Rounds = std::barrier<>;

WorkerEnd train_worker(const TrainingRun& run, transport::Engine& engine, cluster::Store& store,
                       Rounds& rounds) {
  const auto net = std::make_shared<RegressionNet>(engine.rank());
  const auto model = wrap(net);
  const auto optimizer = optimizer::make_optimizer(run.optimizer);
  const Data data;
  const int parts = run.parts > 0 ? run.parts : run.world;
  PhaseClock phases;
  const auto strategy = make_strategy({.model = *model,
                                       .engine = engine,
                                       .store = store,
                                       .optimizer = *optimizer,
                                       .phases = phases,
                                       .options = run.strategy,
                                       .optimizer_options = run.optimizer,
                                       .seed = 3,
                                       .steps = kSteps,
                                       .parts = parts,
                                       .timeout = std::chrono::seconds(60)});
  WorkerEnd end;
  while (const auto claim = strategy->work()->next_work()) {
    if (run.even) rounds.arrive_and_wait();
    strategy->space().begin_step();
    const auto loss = torch::mse_loss(net->forward(data.rows(data.input, *claim, parts)),
                                      data.rows(data.target, *claim, parts)) /
                      parts;
    ++end.claims;
    const bool stop = engine.rank() == 0 && end.claims >= run.stop_after;
    strategy->begin_last_backward({.loss = loss.item<double>(), .stop = stop});
    loss.backward();
    const bool spoils = run.spoiled && engine.rank() == 1;
    float& spoiled = strategy->space().memory().parameters[0];
    const float sound = spoiled;
    if (spoils) spoiled = std::numeric_limits<float>::quiet_NaN();
    const StepOutcome outcome = strategy->finish_step(
        {.lr = run.optimizer.lr, .step = claim->step, .clip_norm = run.clip_norm});
    if (spoils) spoiled = sound;
    EXPECT_EQ(outcome.loss, loss.item<double>());
    end.measured_distance |= outcome.consensus_distance.has_value();
    if (outcome.stop) break;
  }
  rounds.arrive_and_drop();
  strategy->space().memory().buffers[0] = static_cast<float>(engine.rank());
  end.wait_before_meeting = phases.seconds(Phase::wait);
  strategy->meet();
  const tensor::FlatMemory& memory = strategy->space().memory();
  end.parameters.assign(memory.parameters.begin(), memory.parameters.end());
  end.buffers.assign(memory.buffers.begin(), memory.buffers.end());
  end.loss = loss_of(*net, data);
  end.traffic = strategy->report().traffic;
  strategy->close();
  return end;
}

std::vector<WorkerEnd> train(const TrainingRun& run) {
  transport::InprocHub hub(run.world);
  cluster::MemoryStore store;
  Rounds rounds(run.world);
  std::vector<WorkerEnd> ends(static_cast<std::size_t>(run.world));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < run.world; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          std::unique_ptr<transport::Engine> engine = hub.engine(rank);
          if (!run.shared) engine = std::make_unique<transport::ApartEngine>(std::move(engine));
          ends[static_cast<std::size_t>(rank)] = train_worker(run, *engine, store, rounds);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
        }
      });
    }
  }
  return ends;
}

TrainingRun run_of(int world, const std::string& send, const std::string& topology) {
  TrainingRun run;
  run.world = world;
  run.strategy.kind = "gossip";
  run.strategy.send = send;
  run.strategy.topology = topology;
  run.optimizer.lr = 0.1;
  run.optimizer.momentum = 0.5;
  return run;
}

double start_loss() {
  RegressionNet net(0);
  return loss_of(net, Data());
}

double loss_alone() {
  static const double loss = train(run_of(1, "parameters", "all")).front().loss;
  return loss;
}

// What must hold whatever the timing was.
void expect_one_model(const TrainingRun& run, const std::vector<WorkerEnd>& ends) {
  std::int64_t claims = 0;
  for (const WorkerEnd& end : ends) {
    EXPECT_EQ(end.parameters, ends.front().parameters);
    EXPECT_FLOAT_EQ(end.buffers[0], static_cast<float>(run.world - 1) / 2);
    EXPECT_EQ(end.wait_before_meeting, 0);
    if (run.world > 1) {
      EXPECT_GT(end.traffic.sent + end.traffic.received, 0U);
    }
    claims += end.claims;
  }
  if (run.stop_after > kSteps) {
    EXPECT_EQ(claims, kSteps * run.world);
  }
}

struct Case {
  std::string send;
  std::string topology;
  std::string codec;
  bool shared;
};

std::vector<Case> plain_cases() {
  std::vector<Case> cases;
  for (const bool shared : {true, false}) {
    for (const char* topology : {"all", "ring", "random", "exponential"}) {
      cases.push_back({"parameters", topology, "none", shared});
    }
    cases.push_back({"gradients", "all", "none", shared});
  }
  return cases;
}

std::vector<Case> compressed_cases() {
  std::vector<Case> cases;
  for (const bool shared : {true, false}) {
    for (const char* codec : {"fp16", "bf16", "int8", "topk"}) {
      cases.push_back({"parameters", "exponential", codec, shared});
    }
    for (const char* codec : {"fp16", "bf16", "int8", "sign", "topk", "lowrank"}) {
      cases.push_back({"gradients", "all", codec, shared});
    }
  }
  return cases;
}

std::string name_of(const Case& one) {
  return one.send + "_" + one.topology + "_" + one.codec + (one.shared ? "_shared" : "_remote");
}

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << name_of(one);
}

class EveryGossip : public ::testing::TestWithParam<Case> {};

TEST_P(EveryGossip, EndsOnOneModelAsGoodAsThatOfOneProcess) {
  const auto& [send, topology, codec, shared] = GetParam();
  ASSERT_LT(loss_alone(), 0.1 * start_loss());
  const std::vector<int> worlds = {1, 2, 3, 4};
  for (const int world : codec == "none" ? worlds : std::vector<int>{4}) {
    TrainingRun run = run_of(world, send, topology);
    run.shared = shared;
    run.strategy.compression.kind = codec;
    run.strategy.compression.ratio = 0.1;
    run.even = true;
    // With these two, jobs may have no momentum.
    if (codec == "sign" || codec == "lowrank") run.optimizer.momentum = 0;
    const auto ends = train(run);
    expect_one_model(run, ends);
    // Compressed, it may take a little longer.
    EXPECT_LT(ends.front().loss, codec == "none" ? 1.5 * loss_alone() : 0.1 * start_loss())
        << world << " workers, from " << start_loss() << ", alone " << loss_alone();
  }
}

// Somebody may have done all the work before another has begun: how good the model is depends on
// the timing, that there is one does not.
TEST_P(EveryGossip, EndsOnOneModelWhateverTheTiming) {
  const auto& [send, topology, codec, shared] = GetParam();
  TrainingRun run = run_of(3, send, topology);
  run.shared = shared;
  run.strategy.compression.kind = codec;
  run.optimizer.lr = 0.02;
  const auto ends = train(run);
  expect_one_model(run, ends);
  EXPECT_TRUE(std::isfinite(ends.front().loss));
}

const auto kName = [](const auto& test) { return name_of(test.param); };
INSTANTIATE_TEST_SUITE_P(Plain, EveryGossip, ::testing::ValuesIn(plain_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Compressed, EveryGossip, ::testing::ValuesIn(compressed_cases()), kName);

// A model that is not finite would otherwise make all others so within a few steps.
TEST(GossipScreen, AModelThatIsNotFiniteIsCountedAndMovesNobody) {
  for (const bool shared : {true, false}) {
    TrainingRun run = run_of(3, "parameters", "all");
    run.shared = shared;
    run.even = true;
    run.spoiled = true;
    const auto ends = train(run);
    EXPECT_GT(ends[0].traffic.left_out + ends[2].traffic.left_out, 0U);
    EXPECT_EQ(ends[1].traffic.left_out, 0U);
    for (const WorkerEnd& end : ends) {
      for (const float value : end.parameters) ASSERT_TRUE(std::isfinite(value));
      EXPECT_LT(end.loss, start_loss());
    }
  }
}

TEST(Gossip, OneWorkerAloneIsPlainTraining) {
  const auto parameters = train(run_of(1, "parameters", "ring")).front();
  EXPECT_EQ(parameters.parameters, train(run_of(1, "gradients", "all")).front().parameters);
  EXPECT_EQ(parameters.claims, kSteps);
}

TEST(Gossip, AllStopWhenOneIsAskedTo) {
  for (const bool shared : {true, false}) {
    TrainingRun run = run_of(3, "parameters", "exponential");
    run.shared = shared;
    run.stop_after = 5;
    const auto ends = train(run);
    expect_one_model(run, ends);
    EXPECT_EQ(ends[0].claims, 5);
  }
}

TEST(Gossip, ClipsTheOwnGradient) {
  TrainingRun run = run_of(1, "gradients", "all");
  run.clip_norm = 1e-6;
  const auto clipped = train(run).front();
  EXPECT_NEAR(clipped.loss, start_loss(), 1e-3);
  run.strategy.send = "parameters";
  EXPECT_EQ(train(run).front().parameters, clipped.parameters);
}

// Gradients are clipped to nothing, so that weight decay alone moves the model: what it leaves
// tells how many steps were made. One who was quicker than all others may be 200 steps ahead of
// them when they come together, and the mean of models that are far apart has a smaller logarithm
// than the mean of their logarithms: a decay of 1e-4 makes that 0.2 % at most (0.002 made it 4 %).
TEST_P(EveryGossip, MovesTheModelByTheStepsOfTheJob) {
  const auto& [send, topology, codec, shared] = GetParam();
  if (send == "parameters" && (codec == "int8" || codec == "bf16")) {
    GTEST_SKIP() << "has too few digits for so small steps of parameters";
  }
  // So few steps say little of models of which each has its own way: those keep an even pace, and a
  // decay that their messages have digits for.
  const bool models = send == "parameters";
  const double decay = models ? 0.002 : 1e-4;
  for (const int parts : {3, 8}) {
    TrainingRun run = run_of(3, send, topology);
    run.parts = parts;
    run.shared = shared;
    run.strategy.compression.kind = codec;
    run.strategy.compression.ratio = 0.5;
    run.optimizer = {.kind = "sgd", .lr = 0.1, .weight_decay = decay / 0.1};
    run.clip_norm = 1e-12;
    run.even = models;
    const auto end = train(run).front();
    const auto first = RegressionNet(0).hidden;
    const float* now = end.parameters.data();
    double left = 0;
    for (std::int64_t i = 0; i < first.numel(); ++i) left += now[i] / first.data_ptr<float>()[i];
    const double moved = std::log(left / static_cast<double>(first.numel())) / std::log(1 - decay);
    EXPECT_NEAR(moved / kSteps, 1, models ? 0.05 : 0.01) << parts << " parts";
  }
}

TEST(Gossip, MeasuresHowFarTheModelsAreApart) {
  // A worker may be done before another has begun, so it need not be all of them.
  const auto ends = train(run_of(2, "parameters", "ring"));
  EXPECT_TRUE(ends[0].measured_distance || ends[1].measured_distance);
}

}  // namespace
}  // namespace cohort::strategy
