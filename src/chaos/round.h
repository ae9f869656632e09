#pragma once

#include <string>
#include <vector>

#include "chaos/chaos_options.h"
#include "chaos/checks.h"
#include "chaos/faults/fault_schedule.h"

namespace cohort::chaos {

class MovementJob;

/// One round: a training during which the events of a plan happen, one after the other.
///
///   start `cohort train`, with the planted fault of the plan, if there is one, in --faults
///   for each event of the plan:
///     timed     wait for its share of the steps and for a run that is whole, then signal
///     planted   wait until the history tells that its task was lost
///     then      look until the run has recovered: all victims are named as lost, there is a new
///               group where nobody goes on without one, and a later step is logged
///     check     what must hold after an event
///   wait for the end; check the exit code, what is left on the machine, and every loss
///   compare with the quiet run (checks.h)
///
/// A run is *whole* when as many workers have a rank, and as many servers run, as the job says:
/// then the victim is one that takes part. An event that cannot happen any more, because the run
/// was over first, is told as one that did not happen; it is no violation unless it was planted.

/// What became of one planned fault.
struct EventResult {
  FaultEvent event;
  int round = 0;
  std::string strategy;
  std::string target = {};  ///< "worker 1 and server 0"; empty where it did not happen.
  bool happened = false;    ///< False where the run was over before, or a planted one never fired.
  bool recovered = false;
  /// Where it has recovered: from the fault (of a planted one: from when the history told of it)
  /// until a later step was logged.
  double recovery_seconds = 0;
  std::int64_t step = 0;  ///< The last one seen before.
};

/// What became of a round. `violations` is what counts; the rest says where to look.
struct RoundResult {
  RoundPlan plan;
  std::string faults = {};  ///< Planted, as `cohort train --faults` takes them.
  FinishedRun run = {};
  int exit_code = -1;
  double seconds = 0;
  std::vector<EventResult> events = {};
  std::vector<std::string> violations = {};
  std::string log_tails = {};  ///< Where there are violations.
};

/// Trains once without any fault, with checkpoints. Throws Error(invalid) where that fails, or
/// leaves anything behind: then there is nothing to compare with.
FinishedRun run_quietly(const ChaosOptions& options, const TestedStrategy& strategy);

/// Plays one round and returns what became of it; what goes wrong in the training is a violation,
/// not an exception. How long events are apart follows from the steps of `quiet`. `movement` is the
/// job that is trained where the strategy asks for it; then its model's movement is checked too.
RoundResult run_round(const ChaosOptions& options, const RoundPlan& plan, const FinishedRun& quiet,
                      MovementJob* movement = nullptr);

}  // namespace cohort::chaos
