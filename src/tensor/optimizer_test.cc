#include "optimizer/optimizer.h"
#include "optimizer/learning_rate.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace cohort::tensor {
namespace {

constexpr std::int64_t kSteps = 100;

std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// Parameters with the slots their optimizer asks for.
struct Trained {
  explicit Trained(const OptimizerOptions& options, std::size_t count)
      : rule(optimizer::make_optimizer(options)),
        parameters(random_floats(count, 1)),
        slots(rule->slots().size(), std::vector<float>(count)) {}

  void step(std::span<const float> gradients, const optimizer::UpdateScalars& scalars) {
    step(0, parameters.size(), gradients, scalars);
  }

  void step(std::size_t begin, std::size_t count, std::span<const float> gradients,
            const optimizer::UpdateScalars& scalars) {
    std::vector<std::span<float>> parts;
    for (auto& slot : slots) parts.push_back(std::span(slot).subspan(begin, count));
    rule->update(std::span(parameters).subspan(begin, count), gradients.subspan(begin, count),
                 parts, scalars);
  }

  std::unique_ptr<optimizer::Optimizer> rule;
  std::vector<float> parameters;
  std::vector<std::vector<float>> slots;
};

std::unique_ptr<torch::optim::Optimizer> torch_twin(const OptimizerOptions& o, torch::Tensor p) {
  namespace optim = torch::optim;
  const std::vector<torch::Tensor> parameters{std::move(p)};
  const auto betas = std::make_tuple(o.beta1, o.beta2);
  if (o.kind == "adam") {
    auto options = optim::AdamOptions(o.lr).betas(betas).weight_decay(o.weight_decay);
    if (o.epsilon != 0) options.eps(o.epsilon);
    return std::make_unique<optim::Adam>(parameters, options);
  }
  if (o.kind == "adamw") {
    const auto options = optim::AdamWOptions(o.lr).betas(betas).weight_decay(o.weight_decay);
    return std::make_unique<optim::AdamW>(parameters, options);
  }
  if (o.kind == "adagrad") {
    const auto options =
        optim::AdagradOptions(o.lr).lr_decay(o.lr_decay).weight_decay(o.weight_decay);
    return std::make_unique<optim::Adagrad>(parameters, options);
  }
  const auto options = optim::SGDOptions(o.lr)
                           .momentum(o.momentum)
                           .nesterov(o.nesterov)
                           .weight_decay(o.weight_decay);
  return std::make_unique<optim::SGD>(parameters, options);
}

struct Case {
  const char* name;
  OptimizerOptions options;
};

const Case kCases[] = {
    {"sgd", {.kind = "sgd", .lr = 0.1}},
    {"sgd_decay", {.kind = "sgd", .lr = 0.1, .weight_decay = 0.01}},
    {"momentum", {.kind = "sgd", .lr = 0.01, .momentum = 0.9}},
    {"momentum_decay", {.kind = "sgd", .lr = 0.01, .momentum = 0.9, .weight_decay = 0.01}},
    {"nesterov", {.kind = "sgd", .lr = 0.01, .momentum = 0.9, .nesterov = true}},
    {"nesterov_decay",
     {.kind = "sgd", .lr = 0.01, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01}},
    {"adam", {.kind = "adam", .lr = 0.001}},
    {"adam_decay", {.kind = "adam", .lr = 0.01, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.99}},
    {"adam_epsilon", {.kind = "adam", .lr = 0.01, .epsilon = 1e-3}},
    {"adamw", {.kind = "adamw", .lr = 0.001, .weight_decay = 0.01}},
    {"adamw_strong_decay", {.kind = "adamw", .lr = 0.01, .weight_decay = 0.5}},
    {"adagrad", {.kind = "adagrad", .lr = 0.01}},
    {"adagrad_decay", {.kind = "adagrad", .lr = 0.1, .weight_decay = 0.01, .lr_decay = 0.05}},
};

void PrintTo(const Case& test_case, std::ostream* out) {
  *out << test_case.name;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

class EveryOptimizer : public testing::TestWithParam<Case> {};

TEST_P(EveryOptimizer, EqualsTorchOver100Steps) {
  const OptimizerOptions& options = GetParam().options;
  for (const std::size_t count : {1, 15, 16, 33, 1000}) {
    Trained ours(options, count);
    auto theirs = torch::tensor(ours.parameters);
    const auto optimizer = torch_twin(options, theirs);
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      const auto gradients = random_floats(count, static_cast<unsigned>(100 + step));
      theirs.mutable_grad() = torch::tensor(gradients);
      optimizer->step();
      ours.step(gradients,
                {.lr = options.lr * optimizer::decay_of_rate(options, step - 1), .step = step});
    }
    const double difference = (theirs - torch::tensor(ours.parameters)).abs().max().item<double>();
    EXPECT_LE(difference, 1e-6) << count << " parameters";
  }
}

TEST_P(EveryOptimizer, GivesTheSameBitsWhenTheParametersAreCutInSlices) {
  constexpr std::size_t kCount = 1000;
  Trained whole(GetParam().options, kCount);
  Trained sliced(GetParam().options, kCount);
  for (std::int64_t step = 1; step <= 20; ++step) {
    const auto gradients = random_floats(kCount, static_cast<unsigned>(step));
    const optimizer::UpdateScalars scalars{.lr = 0.05, .step = step, .gradient_scale = 0.7};
    whole.step(gradients, scalars);
    for (std::size_t begin = 0; begin < kCount; begin += 37) {
      sliced.step(begin, std::min<std::size_t>(37, kCount - begin), gradients, scalars);
    }
  }
  EXPECT_EQ(std::memcmp(whole.parameters.data(), sliced.parameters.data(), kCount * sizeof(float)),
            0);
}

TEST_P(EveryOptimizer, ScalesTheGradientFirst) {
  constexpr std::size_t kCount = 50;
  Trained scaled(GetParam().options, kCount);
  Trained halved(GetParam().options, kCount);
  const auto gradients = random_floats(kCount, 3);
  auto half = gradients;
  for (float& value : half) value *= 0.5f;
  scaled.step(gradients, {.lr = 0.1, .gradient_scale = 0.5});
  halved.step(half, {.lr = 0.1});
  EXPECT_EQ(scaled.parameters, halved.parameters);
}

TEST_P(EveryOptimizer, LeavesPaddingZero) {
  Trained padding(GetParam().options, 16);
  padding.parameters.assign(16, 0.0f);
  const std::vector<float> zeros(16);
  for (std::int64_t step = 1; step <= 3; ++step) padding.step(zeros, {.lr = 0.1, .step = step});
  EXPECT_EQ(padding.parameters, zeros);
}

INSTANTIATE_TEST_SUITE_P(Of, EveryOptimizer, testing::ValuesIn(kCases), name_of);

TEST(Optimizer, NamesItsSlots) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  EXPECT_THAT(optimizer::make_optimizer({.kind = "sgd"})->slots(), IsEmpty());
  EXPECT_THAT(optimizer::make_optimizer({.kind = "sgd", .momentum = 0.9})->slots(),
              ElementsAre("momentum"));
  EXPECT_THAT(optimizer::make_optimizer({.kind = "adam"})->slots(), ElementsAre("m", "v"));
  EXPECT_THAT(optimizer::make_optimizer({.kind = "adamw"})->slots(), ElementsAre("m", "v"));
  EXPECT_THAT(optimizer::make_optimizer({.kind = "adagrad"})->slots(), ElementsAre("sum"));
}

void expect_invalid(const std::function<void()>& act, const std::string& words) {
  try {
    act();
    FAIL() << "accepted, though wrong: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), testing::HasSubstr(words));
  }
}

TEST(Optimizer, RefusesNumbersThatMakeNoSense) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::pair<OptimizerOptions, const char*> wrong[] = {
      {{.kind = "adan"}, "\"adam\""},
      {{.lr = -0.1}, "lr is -0.1"},
      {{.lr = kNan}, "lr"},
      {{.lr = kInfinity}, "lr"},
      {{.momentum = -1}, "momentum"},
      {{.nesterov = true}, "nesterov"},
      {{.weight_decay = -1}, "weight_decay"},
      {{.kind = "adam", .beta1 = 1}, "beta1"},
      {{.kind = "adam", .beta2 = kNan}, "beta2"},
      {{.kind = "adam", .epsilon = -1}, "epsilon"},
      {{.kind = "adagrad", .lr_decay = -1}, "lr_decay"},
  };
  for (const auto& [options, words] : wrong) {
    expect_invalid([&] { optimizer::make_optimizer(options); }, words);
  }
}

TEST(Optimizer, RefusesSpansThatDoNotFit) {
  Trained trained({.kind = "adam"}, 8);
  const std::vector<float> gradients(8);
  expect_invalid([&] { trained.rule->update(trained.parameters, gradients, {}, {}); }, "0 slots");
  trained.slots[1].resize(7);
  std::vector<std::span<float>> slots(trained.slots.begin(), trained.slots.end());
  expect_invalid([&] { trained.rule->update(trained.parameters, gradients, slots, {}); }, "slots");
}

}  // namespace
}  // namespace cohort::tensor
