#pragma once

#include <optional>

#include "strategy/strategy.h"
#include "train/chief_checkpoints.h"
#include "train/chief_log.h"
#include "train/step_rate.h"
#include "train/worker.h"
#include "train/worker_trace.h"

namespace cohort {

/// What a worker keeps while it goes from one group of workers to the next.
struct WorkerLife {
  WorkerLife(const WorkerRun& its_run, int number)
      : run(its_run),
        worker(number),
        slot(its_run.control.slot(number)),
        total_steps(cohort::total_steps(run.job.train, run.data.train->size())),
        timeout(std::chrono::duration<double>(run.job.cluster.timeout_seconds)),
        trace(run.job.log.trace, phases) {}

  const WorkerRun& run;
  int worker;
  WorkerSlot& slot;
  std::int64_t total_steps;
  Timeout timeout;  ///< Of all its waits for peers.

  PhaseClock phases;
  WorkerTrace trace;
  StepRate rate;
  std::int64_t samples = 0;  ///< Its own.
  std::int64_t own_steps = 0;
  std::int64_t rows_under_way = 0;  ///< Of the step that is being finished.
  std::int64_t validated_epochs = 0;
  double wait_in_steps = 0;
  Traffic traffic_before = {};  ///< In earlier groups.

  std::optional<ChiefLog> log;  ///< While it is the chief.
  /// Since it was the chief: it may still be writing when it is not any more.
  std::optional<ChiefCheckpoints> checkpoints;
};

}  // namespace cohort
