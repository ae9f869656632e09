#include "launch/restart_budget.h"

#include <algorithm>

namespace cohort {
namespace {

using namespace std::chrono_literals;

constexpr auto kRemembered = 10min;
constexpr auto kSoon = 60s;
constexpr Duration kLongestWait = 30s;

}  // namespace

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

}  // namespace cohort
