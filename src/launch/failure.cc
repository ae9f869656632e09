#include "launch/failure.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>

namespace cohort {
namespace {

bool blames_a_peer(ErrorCode code) {
  return code == ErrorCode::peer_lost || code == ErrorCode::timeout;
}

int cause_order(const WorkerFailure& failure) {
  if (failure.signal != 0 || failure.was_silent) return 0;
  return blames_a_peer(failure.code) ? 2 : 1;
}

}  // namespace

void sort_by_cause(std::vector<WorkerFailure>& failures) {
  std::stable_sort(failures.begin(), failures.end(),
                   [](const auto& a, const auto& b) { return cause_order(a) < cause_order(b); });
}

std::string describe(const WorkerFailure& failure) {
  std::string cause = failure.message;
  if (failure.out_of_memory) {
    cause = "was killed: out of memory";
  } else if (failure.signal != 0) {
    cause = fmt::format("was killed by SIG{}", ::sigabbrev_np(failure.signal));
  }
  const std::string log = failure.log.empty() ? "" : fmt::format("; log: {}", failure.log);
  const std::string step =
      failure.role == "worker" ? fmt::format(", after step {}", failure.step) : "";
  const std::string host = failure.host.empty() ? "" : " on " + failure.host;
  return fmt::format("{} {} (pid {}{}{}){} {}{}", failure.role, failure.rank, failure.pid, host,
                     step, failure.signal != 0 ? "" : ":", cause, log);
}

int exit_code(const WorkerFailure& failure) {
  return failure.signal != 0 ? kExitRetry : exit_code(failure.code);
}

int exit_code(ErrorCode code) {
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

}  // namespace cohort
