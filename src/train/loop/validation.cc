#include "train/loop/validation.h"

namespace cohort {

ValidationSums evaluate(Model& model, EvaluationBatches& batches, const LossFunction& loss) {
  torch::NoGradGuard no_grad;
  model.train(false);
  batches.restart();
  ValidationSums sums;
  while (const auto batch = batches.next()) {
    const auto rows = static_cast<double>(batch->input.size(0));
    const torch::Tensor output = model.forward(batch->input);
    sums.loss += loss(output, batch->target).item<double>() * rows;
    sums.samples += rows;
    if (batch->target.scalar_type() == torch::kInt64) {
      const Hits hits = count_hits(output, batch->target);
      sums.right += hits.right;
      sums.predictions += hits.all;
    }
  }
  model.train(true);
  return sums;
}

ValidationResult result_of(const ValidationSums& sums) {
  const auto ratio = [](double part, double all) { return all > 0 ? part / all : 0; };
  return {ratio(sums.loss, sums.samples), ratio(sums.right, sums.predictions)};
}

}  // namespace cohort
