#pragma once

#include <cstdint>

#include "base/deadline.h"

namespace cohort::training {

/// What was measured between two looks.
struct RateWindow {
  double samples_per_second = 0;
  double seconds = 0;
};

/// Samples per second of training. Pauses (validation) are left out of everything, and the first
/// steps of the worker, in which memory is touched for the first time, out of the steady rate. It
/// goes on from group to group: start() begins the clock again, so that the time between two groups
/// counts for neither. For one thread.
class StepRate {
 public:
  static constexpr std::int64_t kWarmUpSteps = 5;

  /// While it lives no time passes for the rate.
  class Pause {
   public:
    explicit Pause(StepRate& rate) : rate_(rate), begin_(Clock::now()) {}
    ~Pause() { rate_.skip(Clock::now() - begin_); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    StepRate& rate_;
    Clock::time_point begin_;
  };

  /// Before the first step of a group.
  void start() { last_ = window_start_ = Clock::now(); }

  void step_done(std::int64_t samples) {
    const auto now = Clock::now();
    window_samples_ += samples;
    seconds_ += std::chrono::duration<double>(now - last_).count();
    if (++steps_ > kWarmUpSteps) {
      steady_seconds_ += std::chrono::duration<double>(now - last_).count();
      steady_samples_ += samples;
    }
    last_ = now;
  }

  /// Of all steps.
  double seconds() const { return seconds_; }

  /// The rate since the last call.
  RateWindow take_window() {
    const double seconds = std::chrono::duration<double>(last_ - window_start_).count();
    const RateWindow window{seconds > 0 ? static_cast<double>(window_samples_) / seconds : 0,
                            seconds};
    window_start_ = last_;
    window_samples_ = 0;
    return window;
  }

  /// 0 where there were only the first steps.
  double steady() const {
    return steady_seconds_ > 0 ? static_cast<double>(steady_samples_) / steady_seconds_ : 0;
  }

 private:
  void skip(Duration pause) {
    last_ += pause;
    window_start_ += pause;
  }

  Clock::time_point last_;          // The end of the last step, moved on by pauses,
  Clock::time_point window_start_;  // and that of the last step before the window.
  std::int64_t steps_ = 0;
  double seconds_ = 0;
  std::int64_t window_samples_ = 0;
  std::int64_t steady_samples_ = 0;
  double steady_seconds_ = 0;
};

}  // namespace cohort::training
