#pragma once

#include <cohort/model.h>

#include "data/evaluation_batches.h"
#include "strategy/strategy.h"
#include "train/loss.h"

namespace cohort {

struct ValidationResult {
  double loss = 0;
  double accuracy = 0;
};

/// Loss and accuracy on the whole validation set, of which every worker takes its part; all get the
/// same result. Accuracy is 0 where targets are not classes.
ValidationResult validate(Model& model, EvaluationBatches& batches, const LossFunction& loss,
                          Strategy& strategy);

}  // namespace cohort
