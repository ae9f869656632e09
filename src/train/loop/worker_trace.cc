#include "train/loop/worker_trace.h"

#include <string>
#include <vector>

#include "base/files.h"
#include "base/log.h"

namespace cohort::training {
namespace {

std::filesystem::path fragment_path(const std::filesystem::path& run_dir, int rank) {
  return run_dir / "logs" / ("trace-" + std::to_string(rank) + ".part");
}

events::TraceStream stream_of(Phase phase) {
  return phase == Phase::data ? events::TraceStream::data : events::TraceStream::compute;
}

std::string name_of(Phase phase) {
  return phase == Phase::communication ? "reduce"
                                       : std::string(kPhaseNames[static_cast<std::size_t>(phase)]);
}

}  // namespace

// Two streams come from the clock of the phases: what the worker's thread does, one phase after the
// other, and what a thread of its strategy does beside it (sums that travel during the backward
// pass). In the picture the second stands in a row of its own, so that one sees what it hides.
WorkerTrace::WorkerTrace(bool wanted, PhaseClock& phases) {
  if (!wanted) return;
  recorder_ = std::make_unique<events::TraceRecorder>();
  phases.listen([this](Phase phase, Clock::time_point begin, Clock::time_point end) {
    record(stream_of(phase), phase, begin, end);
  });
  phases.listen_background([this](Phase phase, Clock::time_point begin, Clock::time_point end) {
    record(events::TraceStream::communication, phase, begin, end);
  });
}

void WorkerTrace::record(events::TraceStream stream, Phase phase, Clock::time_point begin,
                         Clock::time_point end) {
  recorder_->record({stream, name_of(phase), begin, end, step_.load(std::memory_order_relaxed)});
}

void WorkerTrace::write(const std::filesystem::path& run_dir, int rank) const {
  if (!recorder_ || run_dir.empty()) return;
  if (recorder_->dropped() > 0) {
    log_warn("the trace is full: its last {} spans were dropped", recorder_->dropped());
  }
  // The clock counts from the machine's start, the same for all processes of the host.
  write_file_atomically(fragment_path(run_dir, rank),
                        recorder_->to_json_events(rank, Clock::time_point{}));
}

// In the launcher, when all workers are gone. A worker that was killed has left no fragment; the
// others' make a trace all the same.
void merge_traces(const std::filesystem::path& run_dir, int workers) {
  std::vector<std::string> fragments;
  for (int rank = 0; rank < workers; ++rank) {
    const auto path = fragment_path(run_dir, rank);
    if (!std::filesystem::exists(path)) continue;
    fragments.push_back(read_file(path, Links::refuse));
    std::filesystem::remove(path);
  }
  if (!fragments.empty()) events::write_trace(run_dir / "trace.json", fragments);
}

}  // namespace cohort::training
