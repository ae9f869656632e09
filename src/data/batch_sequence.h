#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/work_board.h"
#include "data/sampler.h"

namespace cohort {

struct BatchOptions {
  std::uint64_t seed = 0;
  std::int64_t batch = 1;  ///< Of all workers together.
  int rank = 0;
  int world = 1;
  std::int64_t accumulate = 1;  ///< Micro-batches that a global batch is cut into.
  Cursor start = {};
};

/// Where a worker's slice of a micro-batch stands. A global batch is first cut into micro-batches
/// and each of them into the workers' slices, so that a micro-batch holds the same samples for any
/// number of workers (batch norm looks at all of them).
struct BatchPlace {
  std::int64_t epoch = 0;
  std::int64_t global_rows = 0;  ///< Samples of the step: all workers, all micro-batches.
  std::int64_t micro_rows = 0;   ///< Samples of this micro-batch: all workers.
  std::int64_t first_row = 0;    ///< Where this slice begins in the global batch.
  bool last_of_step = true;      ///< The last micro-batch of its step.
  bool last_of_epoch = false;    ///< The step is the last of its epoch.
  Cursor after;                  ///< The position once the step is done.
};

/// Which samples a worker takes, batch after batch, without end.
class BatchSequence {
 public:
  struct Item {
    std::span<const std::int64_t> indices;  ///< Valid until the next call; may be empty.
    BatchPlace place;
  };

  /// Throws Error(invalid) for options that make no sense.
  BatchSequence(std::int64_t samples, const BatchOptions& options);

  Item next();

  /// Goes on with this part of the batch of this step, counted from the start of epoch 0.
  void seek(const Claim& claim);

 private:
  void begin_epoch(std::int64_t number);

  GlobalOrder order_;
  BatchOptions options_;
  std::vector<std::int64_t> epoch_order_;
  Cursor at_;
  std::int64_t micro_ = 0;
};

}  // namespace cohort
