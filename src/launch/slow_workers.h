#pragma once

#include <cohort/train.h>

#include <span>
#include <string>
#include <vector>

namespace cohort {

/// A worker that takes at least twice the median's time for a step.
struct SlowWorker {
  int rank = 0;
  double step_seconds = 0;
  double median = 0;
};

/// `step_seconds[rank]` is the time each worker is busy with a step; 0 where it is not known. Of an
/// even number the lower of the two in the middle counts as the median, so that of two workers one
/// can be slow.
std::vector<SlowWorker> slow_workers(std::span<const double> step_seconds);

std::string describe(const SlowWorker& slow);

/// What each worker's time went to, a line each.
std::string describe_workers(const std::vector<TaskSummary>& tasks);

}  // namespace cohort
