#pragma once

#include <cstdint>

#include "base/deadline.h"

namespace cohort {

/// Watches a count that a living task raises all the time, whatever else it does (a thread of its
/// own does it): a long step is not a death, a frozen process is silent.
class Pulse {
 public:
  explicit Pulse(Clock::time_point now) : last_(now) {}

  /// Looks at the count again. Returns for how long it has stood still.
  Duration silence(std::uint64_t count, Clock::time_point now) {
    if (count != count_) {
      count_ = count;
      last_ = now;
    }
    return now - last_;
  }

 private:
  std::uint64_t count_ = 0;
  Clock::time_point last_;
};

}  // namespace cohort
