#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/deadline.h"

namespace cohort {

/// How often lost tasks may be replaced. A run of weeks may lose many, so only those of the last
/// ten minutes count; and a task that dies again soon after it was replaced is given more and more
/// time, so that one that cannot live does not keep the others busy.
class RestartBudget {
 public:
  explicit RestartBudget(std::int64_t most) : most_(most) {}

  /// How long to wait before `task` is started again; nothing where it shall not be.
  std::optional<Duration> take(const std::string& task, Clock::time_point now);

  std::int64_t taken() const { return taken_; }

 private:
  struct Restart {
    std::string task;
    Clock::time_point when;
  };

  std::int64_t most_;
  std::int64_t taken_ = 0;
  std::deque<Restart> recent_;
};

}  // namespace cohort
