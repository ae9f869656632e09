#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cluster/membership.h"
#include "launch/control/control_block.h"

// What a user is told of workers that hold up the others, from what the workers show in their
// cards. Nothing is done about them here: who is stuck is ended by others (patience.h, tasks.h).
// For the launcher's thread, which looks in every round of its loop.

namespace cohort::launch {

/// Tells who is waited for when workers stand still.
class StallReport {
 public:
  /// A sentence, where workers of this group have waited for at least ten seconds and nothing was
  /// said of it in the last ten: "waiting 10 s for ranks 3, 7 in step 120, sum of the gradients",
  /// and what those are busy with. Waited for are those that do not wait themselves; where all
  /// wait, those that are furthest behind.
  std::optional<std::string> look(const ControlBlock& control, const cluster::View& view,
                                  Clock::time_point now);

 private:
  std::int64_t told_since_ = 0;     // The beginning of the wait that was told of,
  Clock::time_point tell_again_{};  // and when to tell of it once more.
};

/// A worker that takes at least twice the median's time for a step.
struct SlowWorker {
  int worker = 0;
  double step_seconds = 0;
  double median = 0;
};

/// `step_seconds` is the time that each worker, by number, is busy with a step; 0 where it is not
/// known. Of an
/// even number the lower of the two in the middle counts as the median, so that of two workers one
/// can be slow.
std::vector<SlowWorker> slow_workers(std::span<const double> step_seconds);

std::string describe(const SlowWorker& slow);

/// Tells of every slow worker once in the run.
class SlowReport {
 public:
  /// Sentences about those that are found slow for the first time.
  std::vector<std::string> look(const ControlBlock& control);

 private:
  std::set<int> named_;
};

}  // namespace cohort::launch
