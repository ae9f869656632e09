#pragma once

#include <cohort/error.h>

namespace cohort::cluster {

/// What processes of Cohort exit with where they did not end well, so that whoever started them
/// knows whether to try again.
inline constexpr int kExitFailed = 1;
inline constexpr int kExitWrongUse = 2;  ///< Wrong words, a wrong job file, a wrong input.
inline constexpr int kExitRetry = 138;   ///< A peer was lost; trying again may help.

/// What a process exits with that a signal has killed, as shells say it.
inline constexpr int exit_code_of_signal(int signal) {
  return 128 + signal;
}

/// What a program exits with that was ended by this error.
inline int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
    case ErrorCode::unsupported:
    case ErrorCode::not_found:
      return kExitWrongUse;
    case ErrorCode::peer_lost:
    case ErrorCode::timeout:
      return kExitRetry;
    default:
      return kExitFailed;
  }
}

/// From now on an Error of Cohort's that nobody catches ends the program with its sentence on stderr
/// and its exit code, as if main had ended with it, and not by an abort: of several ranks that end
/// because one was lost, that one is the only one that looks like a crash. What else is thrown ends
/// as it did before. Can be called again.
void end_with_last_words();

}  // namespace cohort::cluster
