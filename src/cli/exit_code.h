#pragma once

#include <cohort/error.h>

namespace cohort {

/// What the command exits with; docs/job.md tells users.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitWrongUse = 2;
inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT
inline constexpr int kExitRetry = 138;

/// For errors that end the command before a run has started; a run has its own in its Summary.
constexpr int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
    case ErrorCode::unsupported:
    case ErrorCode::not_found:
      return kExitWrongUse;
    case ErrorCode::peer_lost:
      return kExitRetry;
    case ErrorCode::cancelled:
      return kExitInterrupted;
    default:
      return kExitFailed;
  }
}

}  // namespace cohort
