#pragma once

#include <torch/torch.h>

namespace cohort {

struct BatchNormTensors {
  torch::Tensor weight;
  torch::Tensor bias;
  torch::Tensor running_mean;
  torch::Tensor running_var;
};

constexpr double kBatchNormMomentum = 0.1;
constexpr double kBatchNormEpsilon = 1e-5;

/// Batch norm in training, of [samples, channels] or [samples, channels, height, width]. Mean and
/// variance are those of the batches of all workers together, by two sums over the workers in the
/// forward and one in the backward pass (step_context().sum_over_workers), in which a worker
/// without samples takes part too. The running values get the same numbers on every worker.
torch::Tensor global_batch_norm(const torch::Tensor& input, const BatchNormTensors& tensors);

}  // namespace cohort
