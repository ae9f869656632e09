#pragma once

#include <csignal>

#include "programs/program_run.h"

namespace cohort::programs {

/// Starts the ranks of this host and stays until they have ended; where one fails, ends the others,
/// and where there are restarts left, starts all again. What they write is passed on (Output), and
/// so are SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2. `run` is complete (see complete()).
///
/// Returns 0 where all ended well, or the exit code of the first cause (first_cause.h), which was said
/// on standard error before. After SIGINT, SIGTERM or SIGHUP nothing is started again. A launcher
/// that nobody reads from ends the ranks as after a failure, and returns 128 + SIGPIPE.
///
/// Ends all children of this process and what comes from them: call it as the body of run_guarded().
/// Throws Error where ranks cannot be started; then none runs on.
int run_ranks(const ProgramRun& run);

}  // namespace cohort::programs
