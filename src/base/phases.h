#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "base/deadline.h"

namespace cohort {

/// Where the time of a worker's steps goes, for the summary of a run and for traces. A PhaseSpan in
/// a block of code measures it; the PhaseClock of the worker adds up.

/// What a worker's time goes to. `communication` is the time the training thread itself spends on
/// moving or adding gradients (what a background thread does meanwhile costs no step time), `wait`
/// the time it stands still for other ranks.
enum class Phase { data, forward, backward, communication, optimizer, checkpoint, wait };

inline constexpr std::array<std::string_view, 7> kPhaseNames = {
    "data", "forward", "backward", "communication", "optimizer", "checkpoint", "wait"};

/// Adds up the phases of one worker's training thread, and tells listeners of every span (for
/// traces). Set the listeners before the first span. All but add_background() is for the training
/// thread alone; that one may be called by any thread.
class PhaseClock {
 public:
  using Listener = std::function<void(Phase, Clock::time_point begin, Clock::time_point end)>;

  void listen(Listener listener) { listener_ = std::move(listener); }
  /// Called on whatever thread worked in the background.
  void listen_background(Listener listener) { background_listener_ = std::move(listener); }

  void add(Phase phase, Clock::time_point begin, Clock::time_point end) {
    seconds_[static_cast<std::size_t>(phase)] += std::chrono::duration<double>(end - begin).count();
    if (listener_) listener_(phase, begin, end);
  }

  /// Two phases that alternated too quickly to be spans: they are shown one after the other.
  void add_interleaved(Phase first, Phase second, Clock::time_point begin, Duration first_time) {
    const auto middle = begin + first_time;
    add(first, begin, middle);
    add(second, middle, Clock::now());
  }

  /// Of the span of `from` that is open, this much turned out to be `to`.
  void move(Phase from, Phase to, Duration time) {
    const double seconds = std::chrono::duration<double>(time).count();
    seconds_[static_cast<std::size_t>(from)] -= seconds;
    seconds_[static_cast<std::size_t>(to)] += seconds;
  }

  /// Work of another thread: it is listened to, but takes none of the training thread's time.
  void add_background(Phase phase, Clock::time_point begin, Clock::time_point end) const {
    if (background_listener_) background_listener_(phase, begin, end);
  }

  double seconds(Phase phase) const { return seconds_[static_cast<std::size_t>(phase)]; }

 private:
  std::array<double, kPhaseNames.size()> seconds_{};  // By phase.
  Listener listener_;
  Listener background_listener_;
};

/// The time from construction to destruction, or to a call of next(), which starts another phase.
class PhaseSpan {
 public:
  PhaseSpan(PhaseClock& clock, Phase phase) : clock_(clock), phase_(phase), begin_(Clock::now()) {}
  ~PhaseSpan() { clock_.add(phase_, begin_, Clock::now()); }
  PhaseSpan(const PhaseSpan&) = delete;
  PhaseSpan& operator=(const PhaseSpan&) = delete;

  void next(Phase phase) {
    const auto now = Clock::now();
    clock_.add(phase_, begin_, now);
    phase_ = phase;
    begin_ = now;
  }

 private:
  PhaseClock& clock_;
  Phase phase_;
  Clock::time_point begin_;
};

}  // namespace cohort
