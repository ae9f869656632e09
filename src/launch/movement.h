#pragma once

#include <optional>
#include <span>

#include "launch/control/control_block.h"

namespace cohort {

/// Whether workers get on, as their launcher sees it. A heartbeat says only that a process is
/// there; a worker *moves* where it makes steps, validates, comes to another state, or is busy with
/// one of the long things between steps (Working in base/activity.h). Who does none of these for
/// long is stuck, or waits for somebody who is.
class Movement {
 public:
  /// Whether one of these workers has moved since the last call.
  bool look(const ControlBlock& control, std::span<const int> workers, Clock::time_point now);

 private:
  std::optional<std::int64_t> last_;
};

/// Of these workers those that stand in the way: that do not wait for another one. All of them
/// where all wait.
std::vector<int> in_the_way(const ControlBlock& control, std::span<const int> workers);

}  // namespace cohort
