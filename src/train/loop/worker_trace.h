#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/phases.h"
#include "events/trace.h"

namespace cohort::training {

/// One worker's part of trace.json (log.trace): listens to its phases, and leaves a fragment in the
/// run folder at its end, which the launcher merges with the others'. Phases may end in the
/// worker's thread and in that of its communication at once; a step is the one that the worker's
/// thread is at.
class WorkerTrace {
 public:
  /// Does nothing unless `wanted`.
  WorkerTrace(bool wanted, PhaseClock& phases);

  void set_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }

  /// Leaves the fragment; nothing where there is no folder. Throws Error where it cannot be
  /// written.
  void write(const std::filesystem::path& run_dir, int rank) const;

 private:
  void record(events::TraceStream stream, Phase phase, Clock::time_point begin,
              Clock::time_point end);

  std::unique_ptr<events::TraceRecorder> recorder_;
  std::atomic<std::int64_t> step_{0};
};

/// Makes trace.json of the fragments in the run folder and removes them. Does nothing where there
/// are none.
void merge_traces(const std::filesystem::path& run_dir, int workers);

}  // namespace cohort::training
