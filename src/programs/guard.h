#pragma once

#include <csignal>
#include <functional>

namespace cohort::programs {

/// Nothing that a run has started outlives it, whoever is killed. A process can ask the kernel that
/// its child ends with it, but not that what the child has started does. So there are two, and each
/// adopts the orphans below it:
///
///   guard  (the process the user sees; passes signals down and the exit code up)
///     └─ launcher  (runs `body`)
///          ├─ rank 0 ── what it starts
///          └─ rank 1 ── what it starts
///
///   the launcher is killed   its ranks end with it (PR_SET_PDEATHSIG); what they had started comes to
///                            the guard, which ends it
///   the guard is killed      the launcher gets guard_is_gone(), and ends all below it
///
/// Only who kills both in the same moment leaves behind what ranks have started; the ranks end even
/// then.

/// The signal that a launcher gets when its guard has gone.
inline int guard_is_gone() {
  return SIGRTMIN;
}

/// Runs `body` as the launcher in a process and a session of its own, and returns the exit code when
/// nothing below it is left: what `body` returned, or 128 and the signal that killed the launcher.
/// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to it, but not to what it starts. After
/// a second SIGINT the launcher has ten seconds, and is killed then. Call it on the main thread,
/// before there are others.
int run_guarded(const std::function<int()>& body);

}  // namespace cohort::programs
