#pragma once

#include <cstdint>
#include <string>

#include "strategy/strategy.h"
#include "train/loop/step_log.h"
#include "train/worker_life.h"

namespace cohort {

/// What a worker counts of its steps: the launcher sees it in the worker's slot while it trains,
/// and as its result when it ends.
class StepBooks {
 public:
  /// `engine`: its name. The others outlive this.
  StepBooks(WorkerLife& life, const Strategy& strategy, std::string engine)
      : life_(life), strategy_(strategy), engine_(std::move(engine)) {}

  /// The step that makes it `steps` steps begins,
  void begin_step(std::int64_t steps);
  /// and is done, with this loss.
  void step_done(std::int64_t steps, double loss);

  /// By this worker so far, in all groups.
  Traffic traffic() const;

  void fill_result(std::int64_t steps, const StepLog& log) const;

 private:
  WorkerLife& life_;
  const Strategy& strategy_;
  std::string engine_;
  Clock::time_point began_;
  double wait_before_ = 0;  // This step.
};

}  // namespace cohort
