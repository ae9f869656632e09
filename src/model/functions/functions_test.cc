// Proves each of our own operators, in value and gradient, against torch's or the textbook's, for
// shapes without rows too; and what torch cannot show: gradients in sinks, their order where they
// travel, and masks that do not depend on who computes a row.
// Our own linear, pooling, dropout and attention against torch's operators: values and gradients.
#include "model/functions/functions.h"
#include "model/functions/function_test_support.h"
#include "tensor/gradient_sink.h"
#include "tensor/step_context.h"

namespace cohort::model {
namespace {

using torch::Tensor;

struct LinearCase {
  std::vector<std::int64_t> input;
  bool relu;
};

/// apply_linear() has two ways, and both must pass.
tensor::StepContext travelling(bool travel) {
  tensor::StepContext context;
  context.gradients_travel = travel;
  return context;
}

class Linear : public testing::TestWithParam<std::tuple<LinearCase, bool>> {};

TEST_P(Linear, EqualsTorch) {
  const auto& [one, travel] = GetParam();
  const tensor::StepScope way(travelling(travel));
  const bool relu = one.relu;
  const Leaves leaves = {random_leaf(one.input, 1), random_leaf({7, 5}, 2), random_leaf({7}, 3)};
  expect_same_function([&](const Leaves& l) { return apply_linear(l[0], l[1], l[2], relu); },
                       [&](const Leaves& l) {
                         const auto y = torch::linear(l[0], l[1], l[2]);
                         return relu ? y.relu() : y;
                       },
                       leaves);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Linear,
    testing::Combine(testing::Values(LinearCase{{4, 5}, false}, LinearCase{{4, 5}, true},
                                     LinearCase{{2, 3, 5}, false}, LinearCase{{2, 3, 5}, true},
                                     LinearCase{{0, 5}, true}, LinearCase{{0, 3, 5}, false}),
                     testing::Bool()));

class LinearFunction : public testing::TestWithParam<bool> {
  const tensor::StepScope way_{travelling(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Ways, LinearFunction, testing::Bool(), [](const auto& test) {
  return test.param ? "GradientsTravel" : "GradientsStay";
});

TEST_P(LinearFunction, TakesInputThatIsNotContiguousAndNoBias) {
  expect_same_function(
      [](const Leaves& l) { return apply_linear(l[0].transpose(0, 1), l[1], Tensor()); },
      [](const Leaves& l) { return torch::linear(l[0].transpose(0, 1), l[1]); },
      {random_leaf({3, 4, 5}, 1), random_leaf({7, 5}, 2)});
}

TEST_P(LinearFunction, AddsUpTheGradientsOfAWeightUsedTwice) {
  expect_same_function(
      [](const Leaves& l) {
        return apply_linear(apply_linear(l[0], l[1], l[2]), l[1], l[2], true);
      },
      [](const Leaves& l) {
        return torch::linear(torch::linear(l[0], l[1], l[2]), l[1], l[2]).relu();
      },
      {random_leaf({4, 5}, 1), random_leaf({5, 5}, 2), random_leaf({5}, 3)});
}

TEST_P(LinearFunction, WritesGradientsToSinksAndThenAdds) {
  const auto input = random_leaf({4, 5}, 1).detach();
  auto weight = random_leaf({7, 5}, 2), bias = random_leaf({7}, 3);
  const auto once = value_and_gradients(
      [&](const Leaves& l) { return torch::linear(input, l[0], l[1]); }, {weight, bias});

  tensor::GradientSink weight_sink(weight, torch::full({7, 5}, 1e9F));
  tensor::GradientSink bias_sink(bias, torch::full({7}, 1e9F));
  for (int pass = 1; pass <= 2; ++pass) {
    const auto output = apply_linear(input, weight, bias);
    torch::manual_seed(99);
    output.backward(torch::randn(output.sizes()));
    EXPECT_FALSE(weight.grad().defined());
    expect_close(weight_sink.view(), pass * once[1]);
    expect_close(bias_sink.view(), pass * once[2]);
  }
  weight_sink.begin_step();
  bias_sink.begin_step();
  apply_linear(input.narrow(0, 0, 0), weight, bias).sum().backward();
  expect_close(weight_sink.view(), torch::zeros({7, 5}), 0);
  expect_close(bias_sink.view(), torch::zeros({7}), 0);
}

TEST(TravellingLinear, MakesTheParametersGradientsBeforeTheInputs) {
  const tensor::StepScope way(travelling(true));
  std::string order;
  const auto note = [&](const Tensor& tensor, const std::string& name) {
    tensor.register_hook([&order, name](const Tensor&) { order += name; });
  };
  const auto input = random_leaf({4, 5}, 1) * 2;
  const auto weight = random_leaf({7, 5}, 2);
  note(input, "input ");
  note(weight, "weight ");
  apply_linear(input, weight, Tensor(), true).sum().backward();
  EXPECT_EQ(order, "weight input ");
}

class Pool : public testing::TestWithParam<std::vector<std::int64_t>> {};

TEST_P(Pool, EqualsTorch) {
  for (const bool relu : {false, true}) {
    // Few different values, so that equal ones meet in a window.
    const auto images = (random_leaf(GetParam(), 5).detach() * 2).round().requires_grad_();
    expect_same_function(
        [&](const Leaves& l) { return max_pool_2x2(l[0], relu); },
        [&](const Leaves& l) { return torch::max_pool2d(relu ? l[0].relu() : l[0], 2); }, {images},
        0);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Pool,
                         testing::Values(std::vector<std::int64_t>{3, 2, 28, 28},
                                         std::vector<std::int64_t>{2, 3, 7, 9},
                                         std::vector<std::int64_t>{1, 1, 2, 260},
                                         std::vector<std::int64_t>{0, 3, 8, 8}));

TEST(PoolFunction, PassesNotANumberOn) {
  auto images = torch::zeros({1, 1, 2, 2});
  images[0][0][1][0] = std::nanf("");
  EXPECT_TRUE(max_pool_2x2(images, true).isnan().item<bool>());
}

TEST(PoolFunction, TakesImagesThatAreNotContiguous) {
  expect_same_function([](const Leaves& l) { return max_pool_2x2(l[0].transpose(2, 3), false); },
                       [](const Leaves& l) { return torch::max_pool2d(l[0].transpose(2, 3), 2); },
                       {random_leaf({2, 3, 6, 4}, 5)}, 0);
}

class Attention : public testing::TestWithParam<bool> {};

// The textbook: softmax(q k^T / sqrt(d) + mask) v, head by head.
Tensor plain_attention(const Tensor& qkv, std::int64_t heads, bool causal) {
  const auto samples = qkv.size(0), positions = qkv.size(1), width = qkv.size(2) / 3;
  const auto split =
      qkv.view({samples, positions, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
  auto scores =
      split[0].matmul(split[1].transpose(2, 3)) / std::sqrt(double(width) / double(heads));
  if (causal) {
    const auto later = torch::ones({positions, positions}, torch::kBool).triu(1);
    scores = scores.masked_fill(later, -INFINITY);
  }
  return scores.softmax(-1).matmul(split[2]).transpose(1, 2).reshape({samples, positions, width});
}

TEST_P(Attention, EqualsTheTextbook) {
  for (const std::int64_t samples : {3, 0}) {
    expect_same_function([&](const Leaves& l) { return attend(l[0], 2, GetParam()); },
                         [&](const Leaves& l) { return plain_attention(l[0], 2, GetParam()); },
                         {random_leaf({samples, 6, 24}, 7)});
  }
}

INSTANTIATE_TEST_SUITE_P(Causal, Attention, testing::Bool());

TEST(AttentionFunction, CausalDoesNotSeeTheFuture) {
  const auto qkv = random_leaf({1, 6, 24}, 7).detach();
  auto changed = qkv.clone();
  changed.select(1, 5).fill_(3);
  const auto before = attend(qkv, 2, true), after = attend(changed, 2, true);
  expect_close(after.narrow(1, 0, 5), before.narrow(1, 0, 5), 0);
  EXPECT_FALSE(after.select(1, 5).equal(before.select(1, 5)));
}

DropoutMask mask_at(std::int64_t step, std::int64_t first_row, const std::string& layer = "3") {
  const tensor::StepScope scope(
      {.seed = 7, .step = step, .first_row = first_row, .sum_over_workers = {}});
  return DropoutMask::of_this_step(layer, 0.3);
}

TEST(Dropout, RowsSplitOverWorkersGiveTheSameAsAllRowsAtOnce) {
  const auto input = torch::ones({6, 5, 11});
  const auto whole = drop_elements(input, mask_at(4, 0));
  const auto first = drop_elements(input.narrow(0, 0, 4), mask_at(4, 0));
  const auto second = drop_elements(input.narrow(0, 4, 2), mask_at(4, 4));
  expect_close(torch::cat({first, second}), whole, 0);
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  const auto output = drop_elements(torch::ones({100, 1000}), mask_at(1, 0));
  const auto dropped = (output == 0).to(torch::kFloat);
  EXPECT_NEAR(dropped.mean().item<double>(), 0.3, 0.01);
  EXPECT_NEAR(output.max().item<double>(), 1 / 0.7, 1e-6);
  // No row and no column is special: each keeps the rate within five standard deviations.
  EXPECT_LT((dropped.mean(0) - 0.3).abs().max().item<double>(), 5 * 0.046);
  EXPECT_LT((dropped.mean(1) - 0.3).abs().max().item<double>(), 5 * 0.0145);
}

TEST(Dropout, StepsLayersAndRowsDiffer) {
  const auto ones = torch::ones({2, 64});
  const auto base = drop_elements(ones, mask_at(1, 0));
  EXPECT_FALSE(base.equal(drop_elements(ones, mask_at(2, 0))));
  EXPECT_FALSE(base.equal(drop_elements(ones, mask_at(1, 0, "4"))));
  EXPECT_FALSE(base[0].equal(base[1]));
}

TEST(Dropout, GradientUsesTheSameMask) {
  const auto input = random_leaf({6, 40}, 8);
  const auto mask = mask_at(2, 3);
  const auto output = drop_elements(input, mask);
  const auto gradient = torch::autograd::grad({output.sum()}, {input})[0];
  expect_close(gradient * input.detach(), output.detach(), 1e-6);
  EXPECT_EQ(drop_elements(torch::ones({0, 4}), mask).numel(), 0);
}

}  // namespace
}  // namespace cohort::model
