#include "train/validation.h"

#include <array>

namespace cohort {

ValidationResult validate(Model& model, EvaluationBatches& batches, const LossFunction& loss,
                          const SumOverWorkers& sum_over_workers) {
  torch::NoGradGuard no_grad;
  model.train(false);
  batches.restart();
  double loss_sum = 0;
  double samples = 0;
  Hits hits;
  while (const auto batch = batches.next()) {
    const auto rows = static_cast<double>(batch->input.size(0));
    const torch::Tensor output = model.forward(batch->input);
    loss_sum += loss(output, batch->target).item<double>() * rows;
    samples += rows;
    if (batch->target.scalar_type() == torch::kInt64) {
      const Hits more = count_hits(output, batch->target);
      hits.right += more.right;
      hits.all += more.all;
    }
  }
  model.train(true);
  std::array<double, 4> sums = {loss_sum, samples, static_cast<double>(hits.right),
                                static_cast<double>(hits.all)};
  sum_over_workers(sums);
  const auto ratio = [](double part, double all) { return all > 0 ? part / all : 0; };
  return {ratio(sums[0], sums[1]), ratio(sums[2], sums[3])};
}

}  // namespace cohort
