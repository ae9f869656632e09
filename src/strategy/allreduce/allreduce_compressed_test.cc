// Training with compressed gradients: ranks are threads of this process. All ranks must end with
// the same bits, close to what one process without Cohort learns, by every codec and with momentum
// before the codec.

#include "strategy/make_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/random.h"
#include "compression/codec.h"
#include "transport/engine_test_support.h"
#include "transport/inproc/inproc.h"

namespace cohort::strategy {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kInputs = 20;
constexpr std::int64_t kClasses = 5;
constexpr std::int64_t kRows = 24;  // Of the global batch.

struct Net : torch::nn::Module {
  Net() {
    // Filled by hand, since torch's own random numbers are shared by all threads.
    first = register_module("first", torch::nn::Linear(kInputs, 37));
    second = register_module("second", torch::nn::Linear(37, kClasses));
    mean = register_buffer("mean", torch::zeros({3}));
    Random random(3);
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : parameters()) {
      float* const values = parameter.data_ptr<float>();
      for (std::int64_t i = 0; i < parameter.numel(); ++i) {
        values[i] = static_cast<float>(random.normal()) * 0.2F;
      }
    }
  }

  // Smooth, so that a small difference stays small: no unit is switched on or off by it.
  torch::Tensor forward(const torch::Tensor& input) { return second(torch::tanh(first(input))); }

  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::Tensor mean;
};

torch::Tensor inputs_of(std::int64_t step) {
  Random random(9, static_cast<std::uint64_t>(step % 4));
  torch::Tensor inputs = torch::empty({kRows, kInputs});
  float* const values = inputs.data_ptr<float>();
  for (std::int64_t i = 0; i < inputs.numel(); ++i) values[i] = static_cast<float>(random.normal());
  return inputs;
}

/// The class of a row is where the first few inputs are largest: something a net can learn.
torch::Tensor classes_of(const torch::Tensor& inputs) {
  return inputs.slice(1, 0, kClasses).argmax(1);
}

struct Run {
  CompressionOptions compression = {};
  OptimizerOptions optimizer = {.kind = "sgd", .lr = 0.3};
  int world = 2;
  std::int64_t steps = 20;
  int bad_rank = -1;  ///< Its loss is not finite in the last step.
  bool background = false;
};

struct Result {
  std::vector<float> parameters;
  std::vector<float> buffers;
  std::vector<double> losses;
  StepOutcome last;
  std::string description;
  Traffic traffic;
};

StepOutcome train_step(Strategy& strategy, Net& net, const Run& run, std::int64_t step, int rank) {
  const torch::Tensor inputs = inputs_of(step);
  const auto mine = [&](const torch::Tensor& all) {
    return all.slice(0, kRows * rank / run.world, kRows * (rank + 1) / run.world);
  };
  net.mean.fill_(static_cast<double>(rank));
  strategy.space().begin_step();
  const torch::Tensor loss =
      torch::nn::functional::cross_entropy(
          net.forward(mine(inputs)), mine(classes_of(inputs)),
          torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum)) /
      static_cast<double>(kRows);
  const bool bad = rank == run.bad_rank && step == run.steps - 1;
  strategy.begin_last_backward(
      {.loss = bad ? std::nan("") : loss.item<double>(), .stop = rank == 0 && step == 3});
  loss.backward();
  return strategy.finish_step({.lr = run.optimizer.lr, .step = step, .want_norm = true});
}

Result train_rank(const Run& run, transport::InprocHub& hub, cluster::Store& store, int rank) {
  transport::ApartEngine engine(hub.engine(rank), [&](transport::EngineFacts& facts) {
    facts.sends_in_background = run.background;
  });
  const auto net = std::make_shared<Net>();
  if (rank != 0) {
    const torch::NoGradGuard no_grad;
    net->first->weight.zero_();  // Rank 0's model is everybody's.
  }
  const auto model = wrap(net);
  const auto optimizer = optimizer::make_optimizer(run.optimizer);
  PhaseClock phases;
  StrategyOptions options;
  options.compression = run.compression;
  const auto strategy = make_allreduce_compressed({.model = *model,
                                                   .engine = engine,
                                                   .store = store,
                                                   .optimizer = *optimizer,
                                                   .phases = phases,
                                                   .options = options,
                                                   .optimizer_options = run.optimizer,
                                                   .seed = 4,
                                                   .steps = run.steps,
                                                   .timeout = std::chrono::seconds(60)});
  Result result;
  for (std::int64_t step = 0; step < run.steps; ++step) {
    result.last = train_step(*strategy, *net, run, step, rank);
    EXPECT_EQ(result.last.stop, step == 3);
    result.losses.push_back(result.last.loss);
  }
  const tensor::FlatMemory& memory = strategy->space().memory();
  result.parameters.assign(memory.parameters.begin(), memory.parameters.end());
  result.buffers.assign(memory.buffers.begin(), memory.buffers.end());
  result.description = strategy->report().words;
  result.traffic = strategy->report().traffic;
  strategy->close();
  return result;
}

/// The results of all ranks.
std::vector<Result> train_ranks(const Run& run) {
  transport::InprocHub hub(run.world);
  cluster::MemoryStore store;
  std::vector<Result> results(static_cast<std::size_t>(run.world));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < run.world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        results[static_cast<std::size_t>(rank)] = train_rank(run, hub, store, rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  threads.clear();
  return results;
}

/// Rank 0's result, after checking that all others have the same.
Result train(const Run& run) {
  const auto results = train_ranks(run);
  for (const Result& result : results) {
    EXPECT_EQ(result.parameters, results[0].parameters);
    EXPECT_EQ(result.buffers, results[0].buffers);
    EXPECT_EQ(result.losses, results[0].losses);
  }
  return results[0];
}

/// SGD on the whole batch, with momentum as torch has it, and nothing of Cohort.
std::vector<float> plain_training(const OptimizerOptions& options, std::int64_t steps) {
  Net net;
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(options.lr)
                                                    .momentum(options.momentum)
                                                    .weight_decay(options.weight_decay));
  for (std::int64_t step = 0; step < steps; ++step) {
    const torch::Tensor inputs = inputs_of(step);
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(net.forward(inputs), classes_of(inputs)).backward();
    optimizer.step();
  }
  std::vector<float> values;
  for (const torch::Tensor& parameter : net.parameters()) {
    const float* const data = parameter.data_ptr<float>();
    values.insert(values.end(), data, data + parameter.numel());
  }
  return values;
}

/// Without the padding between tensors: 37 * 20, 37, 5 * 37 and 5 floats on boundaries of 16.
std::vector<float> without_padding(const std::vector<float>& flat) {
  std::vector<float> values;
  std::size_t offset = 0;
  for (const std::size_t count : {740UL, 37UL, 185UL, 5UL}) {
    const auto begin = flat.begin() + static_cast<long>(offset);
    values.insert(values.end(), begin, begin + static_cast<long>(count));
    offset += (count + 15) / 16 * 16;
  }
  EXPECT_EQ(offset, flat.size());
  return values;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return largest;
}

class CompressedWorlds : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, CompressedWorlds, ::testing::Values(1, 2, 3, 4));

TEST_P(CompressedWorlds, EveryCodecLearnsAndLeavesAllRanksTheSame) {
  for (const std::string& kind : compression::codec_kinds()) {
    SCOPED_TRACE(kind);
    const Result result =
        train({.compression = {.kind = kind, .ratio = 0.1}, .world = GetParam(), .steps = 40});
    EXPECT_LT(result.losses.back(), 0.75 * result.losses.front());
    EXPECT_GT(result.last.gradient_norm, 0);
    EXPECT_THAT(std::vector(result.buffers.begin(), result.buffers.begin() + 3),
                ::testing::Each(static_cast<float>(GetParam() - 1) / 2))
        << "the mean of the ranks";
  }
}

TEST_P(CompressedWorlds, HalvesAreCloseToOneProcessWithoutCompression) {
  const Result result = train({.compression = {.kind = "fp16"}, .world = GetParam(), .steps = 30});
  EXPECT_LT(largest_difference(without_padding(result.parameters), plain_training({.lr = 0.3}, 30)),
            1e-4);
}

TEST_P(CompressedWorlds, PlainIsOneProcess) {
  const Result result = train({.compression = {.kind = "none"}, .world = GetParam(), .steps = 30});
  EXPECT_LT(largest_difference(without_padding(result.parameters), plain_training({.lr = 0.3}, 30)),
            1e-5);
}

TEST(AllreduceCompressed, PaddingStaysZero) {
  const Result result = train({.compression = {.kind = "sign"}});
  for (std::size_t i = 740; i < 752; ++i) EXPECT_EQ(result.parameters[i], 0) << i;
  for (std::size_t i = result.parameters.size() - 11; i < result.parameters.size(); ++i) {
    EXPECT_EQ(result.parameters[i], 0) << i;
  }
}

/// When everything travels, momentum before the choice starts anew in every step; with none kept
/// back at all, that is no momentum.
TEST(AllreduceCompressed, MomentumMovesBeforeTheChoice) {
  const OptimizerOptions momentum{.kind = "sgd", .lr = 0.1, .momentum = 0.9};
  const CompressionOptions everything{.kind = "topk", .ratio = 1};
  const Result corrected = train({.compression = everything, .optimizer = momentum});
  EXPECT_LT(
      largest_difference(without_padding(corrected.parameters), plain_training({.lr = 0.1}, 20)),
      1e-5);
  EXPECT_THAT(corrected.description, HasSubstr("momentum"));

  CompressionOptions uncorrected = everything;
  uncorrected.momentum_correction = false;
  const Result plain = train({.compression = uncorrected, .optimizer = momentum});
  EXPECT_LT(largest_difference(without_padding(plain.parameters), plain_training(momentum, 20)),
            1e-4);

  OptimizerOptions nesterov = momentum;
  nesterov.nesterov = true;
  const Result ahead = train({.compression = everything, .optimizer = nesterov});  // By g + 0.9 g.
  EXPECT_LT(largest_difference(without_padding(ahead.parameters), plain_training({.lr = 0.19}, 20)),
            1e-5);
}

/// The velocity would add up 1/(1-momentum) of the weight decay: without it the decay is that much
/// larger.
TEST(AllreduceCompressed, MomentumBeforeTheChoiceLeavesTheWeightDecayAsItIs) {
  const OptimizerOptions momentum{.kind = "sgd", .lr = 0.1, .momentum = 0.75, .weight_decay = 0.05};
  const CompressionOptions everything{.kind = "topk", .ratio = 1};
  const Result corrected = train({.compression = everything, .optimizer = momentum});
  EXPECT_LT(largest_difference(without_padding(corrected.parameters),
                               plain_training({.lr = 0.1, .weight_decay = 0.2}, 20)),
            1e-5);
}

TEST(AllreduceCompressed, MomentumCorrectionLearns) {
  const Result result = train({.compression = {.kind = "topk", .ratio = 0.02},
                               .optimizer = {.kind = "sgd", .lr = 0.05, .momentum = 0.9},
                               .world = 3,
                               .steps = 60});
  EXPECT_LT(result.losses.back(), 0.75 * result.losses.front());
}

TEST(AllreduceCompressed, ALossThatIsNotFiniteStopsAllBeforeTheUpdate) {
  for (const std::string& kind : compression::codec_kinds()) {
    const CompressionOptions compression{.kind = kind};
    const Result good = train({.compression = compression, .world = 3, .steps = 5});
    const auto results =
        train_ranks({.compression = compression, .world = 3, .steps = 6, .bad_rank = 1});
    for (const Result& result : results) {
      EXPECT_EQ(result.last.diverged_rank, 1);
      EXPECT_EQ(result.parameters, good.parameters);
      EXPECT_EQ(result.buffers, good.buffers);
    }
  }
}

TEST(AllreduceCompressed, CompressionSavesBytes) {
  const auto sent = [](const std::string& kind) {
    return static_cast<double>(train({.compression = {.kind = kind, .ratio = 0.02}}).traffic.sent);
  };
  const double plain = sent("none");
  EXPECT_LT(sent("bf16"), 0.6 * plain);
  EXPECT_LT(sent("int8"), 0.4 * plain);
  EXPECT_LT(sent("topk"), 0.2 * plain);
}

/// Which way is fastest here cannot be known; all ranks must pick the same and go on learning.
TEST(AllreduceCompressed, AutoPicksForAllRanks) {
  for (const bool background : {false, true}) {
    const Result result = train({.compression = {.kind = "auto", .ratio = 0.1},
                                 .optimizer = {.kind = "sgd", .lr = 0.1, .momentum = 0.5},
                                 .world = 3,
                                 .steps = 40,
                                 .background = background});
    EXPECT_THAT(result.description, HasSubstr("picked"));
    EXPECT_LT(result.losses.back(), 0.75 * result.losses.front());
    const Result early = train({.compression = {.kind = "auto"}, .steps = 4});
    EXPECT_THAT(early.description, HasSubstr("try none, bf16, int8, topk"));
  }
}

}  // namespace
}  // namespace cohort::strategy
