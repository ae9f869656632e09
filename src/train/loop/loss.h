#pragma once

#include <cohort/job.h>
#include <torch/torch.h>

#include <functional>

namespace cohort {

using LossFunction = std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)>;

/// The mean loss of a batch. For sequences the output is [batch, position, class] and every
/// position counts alike.
LossFunction make_loss(const TrainOptions& options);

/// How many predictions are right, and how many there are, where targets are class ids.
struct Hits {
  double right = 0;
  double all = 0;
};
Hits count_hits(const torch::Tensor& output, const torch::Tensor& target);

}  // namespace cohort
