#include "launch/failure.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;

constexpr auto kRemembered = 10min;
constexpr auto kSoon = 60s;
constexpr Duration kLongestWait = 30s;

bool blames_a_peer(ErrorCode code) {
  return code == ErrorCode::peer_lost || code == ErrorCode::timeout;
}

// When one worker dies its peers fail too, moments later, and all of them end. Whoever blames
// nobody else is the likeliest cause: first those that were killed or fell silent, then those with
// an error of their own, last those who only tell that a peer was lost.
int cause_order(const TaskFailure& failure) {
  if (failure.signal != 0 || failure.was_silent) return 0;
  return blames_a_peer(failure.code) ? 2 : 1;
}

}  // namespace

void sort_by_cause(std::vector<TaskFailure>& failures) {
  std::stable_sort(failures.begin(), failures.end(),
                   [](const auto& a, const auto& b) { return cause_order(a) < cause_order(b); });
}

std::string describe(const TaskFailure& failure) {
  std::string cause = failure.message;
  if (failure.out_of_memory) {
    cause = "was killed: out of memory";
  } else if (failure.signal != 0) {
    cause = fmt::format("was killed by SIG{}", ::sigabbrev_np(failure.signal));
  }
  const std::string log = failure.log.empty() ? "" : fmt::format("; log: {}", failure.log);
  const std::string step =
      failure.role == cluster::kWorkerRole ? fmt::format(", after step {}", failure.step) : "";
  const std::string host = failure.host.empty() ? "" : " on " + failure.host;
  return fmt::format("{} (pid {}{}{}){} {}{}", cluster::task_name(failure.role, failure.number),
                     failure.pid, host, step, failure.signal != 0 ? "" : ":", cause, log);
}

// What would happen again in a new process: a wrong job, a file that is not there, memory that is
// too small. Losses, timeouts and failed devices may be over by then; a signal says nothing.
bool is_hopeless(const TaskFailure& failure) {
  if (failure.signal != 0) return false;
  return failure.code != ErrorCode::io && failure.code != ErrorCode::peer_lost &&
         failure.code != ErrorCode::timeout && failure.code != ErrorCode::cancelled;
}

int exit_code(const TaskFailure& failure) {
  return failure.signal != 0 ? cluster::kExitRetry : cluster::exit_code(failure.code);
}

// Restarts of the last ten minutes count, not those of the whole run: a run of weeks may lose a
// worker every day. A task that dies again within a minute of its restart waits twice as long every
// time, so that one that cannot start does not eat up the budget at once.
std::optional<Duration> RestartBudget::take(const std::string& task, Clock::time_point now) {
  std::erase_if(recent_, [&](const Restart& restart) { return now - restart.when > kRemembered; });
  if (static_cast<std::int64_t>(recent_.size()) >= most_) return std::nullopt;
  const auto again = std::ranges::count_if(recent_, [&](const Restart& restart) {
    return restart.task == task && now - restart.when <= kSoon;
  });
  recent_.push_back({task, now});
  ++taken_;
  if (again == 0) return Duration::zero();
  Duration wait = 1s;  // Then 2, 4, 8, …
  for (auto doublings = again - 1; doublings > 0 && wait < kLongestWait; --doublings) wait *= 2;
  return std::min(wait, kLongestWait);
}

}  // namespace cohort::launch
