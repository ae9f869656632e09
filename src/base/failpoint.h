#pragma once

#include <string>

namespace cohort {

/// Named places where this process can be made to fail on purpose: by a test, or by `cohort chaos`.
/// Where none is set, passing one costs a load.

/// Does what was set for this name, at the passing it was set for; otherwise nothing. Throws Error
/// where that is the action.
void failpoint(const char* name);

/// Sets what happens where, for this process and those it forks from now on. `text` is a list of
/// NAME=ACTION[@N], separated by commas; N is the passing at which it happens, once (1 where left
/// out). Actions: error (throws Error(io)), no-space (throws Error(no_space)), exit (ends with code
/// 1 at once), kill (SIGKILL), stop (SIGSTOP). An empty text removes all. Throws Error(invalid).
/// Call it while no other thread passes a failpoint.
void set_failpoints(const std::string& text);

}  // namespace cohort
