#include "programs/first_cause.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "cluster/exit_code.h"

namespace cohort::programs {
namespace {

bool by_violence(const RankEnd& end) {
  if (!WIFSIGNALED(end.status) || end.by_us) return false;
  return WTERMSIG(end.status) != SIGABRT && WTERMSIG(end.status) != SIGPIPE;
}

bool lost_its_peer(const RankEnd& end) {
  return WIFEXITED(end.status) && WEXITSTATUS(end.status) == cluster::kExitRetry;
}

/// See the header; those that ended well after all others.
int order_of(const RankEnd& end) {
  if (ended_well(end)) return 7;
  if (by_violence(end)) return end.told ? 3 : 1;
  if (lost_its_peer(end)) return end.told ? 6 : 4;
  return end.told ? 5 : 2;
}

std::string way_of(const RankEnd& end) {
  if (end.out_of_memory) return "was killed: out of memory";
  if (WIFSIGNALED(end.status)) {
    return fmt::format("was killed by SIG{}{}", ::sigabbrev_np(WTERMSIG(end.status)),
                       WCOREDUMP(end.status) ? " (core dumped)" : "");
  }
  const int code = WEXITSTATUS(end.status);
  if (code == cluster::kExitRetry)
    return fmt::format("ended with exit code {}: it lost a peer", code);
  return fmt::format("ended with exit code {}", code);
}

}  // namespace

bool ended_well(const RankEnd& end) {
  return end.status == 0;
}

const RankEnd* first_cause(std::span<const RankEnd> ends) {
  const auto first = std::min_element(ends.begin(), ends.end(), [](const auto& a, const auto& b) {
    return order_of(a) < order_of(b);
  });
  return first == ends.end() || ended_well(*first) ? nullptr : &*first;
}

std::string describe(const RankEnd& end) {
  const std::string log = end.log.empty() ? "" : fmt::format("; log: {}", end.log);
  return fmt::format("rank {} (pid {}) {}{}", end.rank, end.pid, way_of(end), log);
}

int exit_code(const RankEnd& end) {
  return WIFSIGNALED(end.status) ? cluster::exit_code_of_signal(WTERMSIG(end.status))
                                 : WEXITSTATUS(end.status);
}

}  // namespace cohort::programs
