#pragma once

#include <cohort/model.h>

#include <functional>
#include <span>

#include "data/evaluation_batches.h"
#include "train/loss.h"

namespace cohort {

struct ValidationResult {
  double loss = 0;
  double accuracy = 0;
};

/// Replaces them by their sum over all workers.
using SumOverWorkers = std::function<void(std::span<double>)>;

/// Loss and accuracy on the whole validation set, of which every worker takes its part; all get the
/// same result. Accuracy is 0 where targets are not classes.
ValidationResult validate(Model& model, EvaluationBatches& batches, const LossFunction& loss,
                          const SumOverWorkers& sum_over_workers);

}  // namespace cohort
