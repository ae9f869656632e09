#pragma once

#include <string>

namespace cohort {

/// Named places where this process can be made to fail on purpose, by a test or by `cohort chaos`:
/// code that must survive a failure at some place says failpoint("room.place") there. Where none
/// is set, passing one costs a load. Settings are inherited by fork(), so a launcher can set them
/// for workers; passings are counted in each process for itself.

/// Does what was set for this name, at the passing it was set for; otherwise nothing. Throws Error
/// where that is the action. Any thread may pass.
void failpoint(const char* name);

/// Sets what happens where, for this process and those it forks from now on, in place of all that
/// was set before; an empty text removes all. `text` is a list, separated by commas, of
///
///   NAME=ACTION[@N]     at passing N of NAME, once; N is 1 where left out
///
///   error      throws Error(io)            exit   ends the process at once with code 1
///   no-space   throws Error(no_space)      kill   SIGKILL        stop   SIGSTOP
///   no-memory  throws std::bad_alloc
///
/// Throws Error(invalid) for a text that is not of this form. Call it while no other thread passes
/// a failpoint.
void set_failpoints(const std::string& text);

}  // namespace cohort
