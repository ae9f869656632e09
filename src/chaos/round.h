#pragma once

#include <string>
#include <vector>

#include "chaos/checks.h"
#include "chaos/faults/fault_schedule.h"
#include "chaos/session.h"

namespace cohort {

class MovementJob;

/// What became of one planned fault.
struct EventResult {
  FaultEvent event;
  int round = 0;
  std::string strategy;
  std::string target = {};  ///< worker 1, server 0; empty where it did not happen.
  bool happened = false;    ///< False where the run was over before, or a planted one never fired.
  bool recovered = false;
  double recovery_seconds = 0;  ///< Where it has recovered.
  std::int64_t step = 0;        ///< The last one seen before.
};

struct RoundResult {
  RoundPlan plan;
  std::string faults = {};  ///< Planted.
  FinishedRun run = {};
  int exit_code = -1;
  double seconds = 0;
  std::vector<EventResult> events = {};
  std::vector<std::string> violations = {};
  std::string log_tails = {};  ///< Where there are violations.
};

/// Trains once without any fault, with checkpoints, and throws Error where that fails.
FinishedRun run_quietly(const ChaosOptions& options, const TestedStrategy& strategy);

/// Trains once while the faults of the plan happen one after the other, each when the run has
/// recovered from the one before, and checks after each and at the end that nothing was lost.
/// `movement` is the job that is trained where the strategy asks for it; then its model's movement
/// is checked too.
RoundResult run_round(const ChaosOptions& options, const RoundPlan& plan, const FinishedRun& quiet,
                      MovementJob* movement = nullptr);

}  // namespace cohort
