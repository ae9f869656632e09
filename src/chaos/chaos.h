#pragma once

#include "chaos/session.h"

namespace cohort {

/// Trains the job again and again, with each strategy in turn, under faults that follow from the
/// seed, and checks that nothing is lost. Prints what happens and a report, which is also in
/// chaos.json of the folder. Returns the exit code: 1 where anything was lost.
int run_chaos(const ChaosOptions& options);

/// One SIGKILL of a random worker per minute, for `minutes`, with each strategy: how many steps per
/// second are made, compared with a run that is left alone. The two take turns, so that they share
/// the machine's moods. Prints it, and writes goodput.json into the folder. Returns the exit code:
/// 1 where a run did not survive.
int run_goodput(const ChaosOptions& options);

}  // namespace cohort
