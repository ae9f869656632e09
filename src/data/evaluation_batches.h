#pragma once

#include <cohort/dataset.h>

#include <memory>
#include <optional>
#include <vector>

#include "data/sampler.h"

namespace cohort {

/// A worker's part of a validation set, in order, in chunks. The workers' parts together are the
/// whole set, each sample once.
class EvaluationBatches {
 public:
  EvaluationBatches(std::shared_ptr<const Dataset> dataset, std::int64_t chunk, int rank = 0,
                    int world = 1);

  /// Nothing at the end. The tensors are valid until the next call.
  std::optional<Batch> next();

  /// From the first chunk again.
  void restart() { at_ = part_.begin; }

  /// Samples of this worker's part.
  std::int64_t size() const { return part_.size(); }

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::int64_t chunk_;
  Slice part_;
  std::int64_t at_;
  std::vector<std::int64_t> indices_;
  Batch buffer_;
};

}  // namespace cohort
