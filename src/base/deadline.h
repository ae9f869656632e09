#pragma once

#include <algorithm>
#include <chrono>

namespace cohort {

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;

/// The moment after which a blocking call gives up. Passed by value down a chain of calls, so that
/// all of them together keep to one limit.
class Deadline {
 public:
  static Deadline in(Duration duration) { return Deadline(Clock::now() + duration); }
  static Deadline in_seconds(double seconds) {
    return in(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  }

  bool passed() const { return Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }

  /// Never negative.
  Duration remaining() const { return std::max(at_ - Clock::now(), Duration::zero()); }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}

  Clock::time_point at_;
};

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace cohort
