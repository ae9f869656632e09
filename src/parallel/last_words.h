#pragma once

namespace cohort::parallel {

/// From now on an Error of Cohort's that nobody catches ends the program with its sentence on stderr
/// and the exit code that launchers understand (cluster/exit_code.h), as if main had ended with it, and
/// not by an abort: of several ranks that end because one was lost, that one is the only one that
/// looks like a crash. What else is thrown ends as it did before. Can be called again.
void end_with_last_words();

}  // namespace cohort::parallel
