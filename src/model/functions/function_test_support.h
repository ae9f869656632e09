#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <vector>

namespace cohort::model {

inline void expect_close(const torch::Tensor& got, const torch::Tensor& want,
                         double tolerance = 1e-5) {
  ASSERT_TRUE(got.defined() && want.defined());
  ASSERT_EQ(got.sizes(), want.sizes());
  if (got.numel() == 0) return;
  EXPECT_LE((got - want).abs().max().item<double>(), tolerance);
}

/// A new leaf with random values, the same for the same seed, on whatever thread.
inline torch::Tensor random_leaf(torch::IntArrayRef sizes, std::uint64_t seed) {
  return torch::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed)).requires_grad_();
}

using Leaves = std::vector<torch::Tensor>;
using TensorFunction = std::function<torch::Tensor(const Leaves&)>;

/// The value of `function` at `leaves`, followed by the gradient of each leaf when the output's
/// gradient is a fixed random tensor.
inline std::vector<torch::Tensor> value_and_gradients(const TensorFunction& function,
                                                      const Leaves& leaves) {
  const auto output = function(leaves);
  torch::manual_seed(99);
  auto results = torch::autograd::grad({output}, leaves, {torch::randn(output.sizes())});
  results.insert(results.begin(), output.detach());
  return results;
}

inline void expect_same_function(const TensorFunction& got, const TensorFunction& want,
                                 const Leaves& leaves, double tolerance = 1e-5) {
  const auto ours = value_and_gradients(got, leaves);
  const auto theirs = value_and_gradients(want, leaves);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    SCOPED_TRACE(i == 0 ? "value" : "gradient of leaf " + std::to_string(i - 1));
    expect_close(ours[i], theirs[i], tolerance);
  }
}

}  // namespace cohort::model
