#pragma once

#include <sys/types.h>

#include <functional>

#include "base/deadline.h"

namespace cohort::os {

/// What this process's children have started and left behind. A process whose parent ends is given
/// to the nearest ancestor that has asked for orphans, whatever process group or session it has gone
/// to since; so who asks can end all that ever came from it.

/// From now on orphans among this process's descendants become its children.
void adopt_orphans();

/// Takes away those adopted ones that have ended, so that they fill no table. `is_own` knows the
/// children that somebody else waits for.
void reap_orphans(const std::function<bool(pid_t)>& is_own);

/// Ends all children of this process by SIGKILL, and theirs as they become its own, until there are
/// none. Call it when nobody waits for any child any more. False where one did not end before the
/// deadline.
bool end_descendants(Deadline deadline);

}  // namespace cohort::os
