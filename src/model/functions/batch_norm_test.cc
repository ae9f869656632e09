// Proves batch norm against torch's, alone and as workers that are threads of this process:
// together they give what one process gives for the whole batch, also where one of them has no
// rows.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "model/functions/function_test_support.h"
#include "model/functions/functions.h"
#include "tensor/step_context.h"

namespace cohort::model {
namespace {

using torch::Tensor;

BatchNormTensors tensors_for(std::int64_t channels) {
  return {random_leaf({channels}, 11), random_leaf({channels}, 12), torch::zeros({channels}),
          torch::ones({channels})};
}

struct Outcome {
  Tensor output, input_grad, weight_grad, bias_grad, running_mean, running_var;
};

template <class Norm>
Outcome run(const Tensor& values, const Tensor& output_grad, const Norm& norm) {
  const auto input = values.clone().requires_grad_();
  auto tensors = tensors_for(values.size(1));
  const auto output = norm(input, tensors);
  const auto grads =
      torch::autograd::grad({output}, {input, tensors.weight, tensors.bias}, {output_grad});
  return {output.detach(), grads[0], grads[1], grads[2], tensors.running_mean, tensors.running_var};
}

Tensor torchs(const Tensor& input, BatchNormTensors& tensors) {
  return torch::batch_norm(input, tensors.weight, tensors.bias, tensors.running_mean,
                           tensors.running_var, true, 0.1, 1e-5, false);
}

Tensor ours(const Tensor& input, BatchNormTensors& tensors) {
  return global_batch_norm(input, tensors);
}

void expect_same(const Outcome& got, const Outcome& want) {
  expect_close(got.output, want.output);
  expect_close(got.input_grad, want.input_grad);
  expect_close(got.weight_grad, want.weight_grad, 5e-5);
  expect_close(got.bias_grad, want.bias_grad, 5e-5);
  expect_close(got.running_mean, want.running_mean);
  expect_close(got.running_var, want.running_var);
}

class BatchNorm : public testing::TestWithParam<std::vector<std::int64_t>> {
 protected:
  void SetUp() override {
    values = random_leaf(GetParam(), 1).detach() * 3 + 10;
    output_grad = random_leaf(GetParam(), 2).detach();
  }
  Tensor values, output_grad;
};

TEST_P(BatchNorm, EqualsTorch) {
  expect_same(run(values, output_grad, ours), run(values, output_grad, torchs));
}

/// Adds the numbers of all threads that call it together.
class ThreadSum {
 public:
  explicit ThreadSum(int threads) : threads_(threads) {}

  /// Each thread leaves its values; the last one to come adds them up and opens the next round.
  void operator()(std::span<double> values) {
    std::unique_lock lock(mutex_);
    if (arrived_ == 0) total_.assign(values.size(), 0.0);
    for (std::size_t i = 0; i < values.size(); ++i) total_[i] += values[i];
    const int round = round_;
    if (++arrived_ == threads_) {
      arrived_ = 0;
      result_ = total_;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round; });
    std::copy(result_.begin(), result_.end(), values.begin());
  }

 private:
  const int threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  int round_ = 0;
  std::vector<double> total_;
  std::vector<double> result_;
};

TEST_P(BatchNorm, WorkersTogetherEqualOneProcess) {
  const auto whole = run(values, output_grad, ours);
  const std::int64_t rows = values.size(0);
  const std::vector<std::int64_t> begins = {0, rows - 2, rows - 2, rows};  // The second has none.
  std::vector<Outcome> parts(3);
  ThreadSum sum(3);
  {
    std::vector<std::jthread> workers;
    for (std::size_t w = 0; w < parts.size(); ++w) {
      workers.emplace_back([&, w] {
        tensor::step_context().sum_over_workers = [&](std::span<double> values) { sum(values); };
        const auto begin = begins[w], count = begins[w + 1] - begins[w];
        parts[w] = run(values.narrow(0, begin, count), output_grad.narrow(0, begin, count), ours);
      });
    }
  }
  const Outcome together = {
      torch::cat({parts[0].output, parts[1].output, parts[2].output}),
      torch::cat({parts[0].input_grad, parts[1].input_grad, parts[2].input_grad}),
      parts[0].weight_grad + parts[1].weight_grad + parts[2].weight_grad,
      parts[0].bias_grad + parts[1].bias_grad + parts[2].bias_grad,
      parts[0].running_mean,
      parts[0].running_var};
  expect_same(together, whole);
  for (const auto& part : parts) {
    EXPECT_TRUE(part.running_mean.equal(parts[0].running_mean));
    EXPECT_TRUE(part.running_var.equal(parts[0].running_var));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNorm,
                         testing::Values(std::vector<std::int64_t>{8, 5, 7, 3},
                                         std::vector<std::int64_t>{9, 6}));

TEST(BatchNormFunction, KeepsTheVarianceOfValuesFarFromZero) {
  const auto values = random_leaf({64, 2}, 1).detach() + 1000;
  const auto exact = values.to(torch::kDouble).var(0, false).to(torch::kFloat);
  auto tensors = tensors_for(2);
  global_batch_norm(values, tensors);
  const auto got = (tensors.running_var - 0.9) / 0.1 * 63 / 64;
  expect_close(got, exact, 1e-4);
}

}  // namespace
}  // namespace cohort::model
