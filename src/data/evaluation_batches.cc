#include "data/evaluation_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/fail.h"

namespace cohort {

EvaluationBatches::EvaluationBatches(std::shared_ptr<const Dataset> dataset, std::int64_t chunk,
                                     int rank, int world)
    : dataset_(std::move(dataset)),
      chunk_(chunk),
      part_(worker_slice(dataset_->size(), rank, world)),
      at_(part_.begin) {
  if (chunk < 1) fail(ErrorCode::invalid, "a chunk of {} samples makes no sense", chunk);
}

std::optional<Batch> EvaluationBatches::next() {
  const std::int64_t rows = std::min(chunk_, part_.end - at_);
  if (rows <= 0) return std::nullopt;
  indices_.resize(static_cast<std::size_t>(rows));
  std::iota(indices_.begin(), indices_.end(), at_);
  dataset_->gather_into(indices_, buffer_);
  at_ += rows;
  return buffer_;
}

}  // namespace cohort
