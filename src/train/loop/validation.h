#pragma once

#include <cohort/model.h>

#include <span>

#include "data/evaluation_batches.h"
#include "train/loop/loss.h"

namespace cohort {

/// Samples that are computed at once. How a product is cut can change its last bits, so whoever
/// wants to find the same accuracy again takes as many.
inline constexpr std::int64_t kValidationChunk = 256;

/// How much of the validation set a worker looks at: its share of it, or everything.
enum class ValidationPart { own_share, whole_set };

/// What was seen of a validation set. Those of several workers are added up.
struct ValidationSums {
  double loss = 0;  ///< Of all samples.
  double samples = 0;
  double right = 0;  ///< Predictions, where targets are classes,
  double predictions = 0;
};

struct ValidationResult {
  double loss = 0;      ///< The mean over the samples.
  double accuracy = 0;  ///< 0 where targets are not classes.
};

/// A pass over the batches with the model as it is; it is in training mode again then.
ValidationSums evaluate(Model& model, EvaluationBatches& batches, const LossFunction& loss);

ValidationResult result_of(const ValidationSums& sums);

}  // namespace cohort
