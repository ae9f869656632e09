#pragma once

#include <optional>
#include <utility>

#include "base/traffic.h"
#include "data/sampler.h"
#include "strategy/strategy.h"
#include "train/loop/chief_log.h"
#include "train/loop/step_rate.h"
#include "train/loop/worker_trace.h"
#include "train/state/checkpoint_writers.h"
#include "train/worker.h"

namespace cohort::training {

/// What a worker keeps while it goes from one group of workers to the next: counts that go on, its
/// card in the control block, and what it writes. Sessions, and all that is made for one group, are
/// given it and change it. For the worker's thread; what its writers' threads use is theirs.
struct WorkerLife {
  WorkerLife(const WorkerRun& its_run, int number)
      : run(its_run),
        worker(number),
        card(its_run.control.card(number)),
        total_steps(training::total_steps(run.job.train, run.data.train->size())),
        parts(run.job),
        timeout(std::chrono::duration<double>(run.job.cluster.timeout_seconds)),
        trace(run.job.log.trace, phases) {}

  /// The steps as epochs, with fraction.
  double epochs_after(std::int64_t steps) const {
    const std::int64_t all = run.data.train->size();
    const data::Cursor cursor = data::cursor_after(steps, all, run.job.train.batch);
    return static_cast<double>(cursor.epoch) +
           static_cast<double>(cursor.offset) / static_cast<double>(all);
  }

  /// Counts the rows under way: what the worker has learned from them is applied, or will be.
  void count_rows() {
    const std::int64_t rows = std::exchange(rows_under_way, 0);
    samples += rows;
    card.samples.fetch_add(rows, std::memory_order_relaxed);
    ++own_steps;
  }

  const WorkerRun& run;
  int worker;
  launch::WorkerCard& card;
  std::int64_t total_steps;
  WorkerParts parts;  ///< Of checkpoints, while it is not the chief.
  Timeout timeout;    ///< Of all its waits for peers.

  PhaseClock phases;
  WorkerTrace trace;
  StepRate rate;
  std::int64_t samples = 0;           ///< Its own rows, of all its steps that were applied.
  std::int64_t own_steps = 0;         ///< Steps, or pieces of steps, that it took part in.
  std::int64_t rows_under_way = 0;    ///< Of the step that is being finished.
  std::int64_t validated_epochs = 0;  ///< See EpochValidation.
  double wait_in_steps = 0;           ///< Seconds that its steps waited for others.
  Traffic traffic_before = {};        ///< In earlier groups.

  std::optional<ChiefLog> log;  ///< While it is the chief.
  /// Since it was the chief: it may still be writing when it is not any more.
  std::optional<ChiefCheckpoints> checkpoints;
};

}  // namespace cohort::training
