#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include "base/deadline.h"

namespace cohort::programs {

/// How long ranks may take to end.
struct Patience {
  /// After the first has failed: for the others to notice, to say so and to end by themselves, and
  /// for a death that is still under way (a core is written) to become known as the cause.
  Duration notice = std::chrono::seconds(1);
  /// From SIGTERM to SIGKILL.
  Duration terminate = std::chrono::seconds(5);
  /// After the user asked them to end: to save what they have.
  Duration save = std::chrono::minutes(10);
};

/// When the ranks that still run are sent which signal. A failure ends the others within seconds:
///
///   a rank fails  -- notice -->  SIGTERM  -- terminate -->  SIGKILL
///
/// A stop that the user asked for was passed on already, and the ranks may take their time; one that
/// ends otherwise than well by it is no failure. A second SIGINT ends all at once. It is arithmetic:
/// moments are given.
class Ending {
 public:
  explicit Ending(Patience patience) : patience_(patience) {}

  void rank_failed(Clock::time_point now) {
    if (asked_ || terminate_at_) return;
    terminate_at_ = now + patience_.notice;
    kill_by(*terminate_at_ + patience_.terminate);
  }

  /// A signal by which the user asks all to end was passed on.
  void asked_by(int signal, Clock::time_point now) {
    const bool again = signal == SIGINT && std::exchange(interrupted_, true);
    asked_ = true;
    terminate_at_.reset();
    kill_by(again ? now : now + patience_.save);
  }

  void at_once(Clock::time_point now) { kill_by(now); }

  /// The signal that is due, each once.
  std::optional<int> due(Clock::time_point now) {
    if (kill_at_ && now >= *kill_at_ && !std::exchange(killed_, true)) return SIGKILL;
    if (!terminate_at_ || now < *terminate_at_ || terminated_ || killed_) return std::nullopt;
    terminated_ = true;
    return SIGTERM;
  }

  /// Until the next one is due.
  std::optional<Duration> wait(Clock::time_point now) const {
    if (killed_ || !kill_at_) return std::nullopt;
    const bool terminates_first = terminate_at_ && !terminated_;
    const auto next = terminates_first ? std::min(*terminate_at_, *kill_at_) : *kill_at_;
    return std::max(next - now, Duration::zero());
  }

 private:
  void kill_by(Clock::time_point when) { kill_at_ = std::min(kill_at_.value_or(when), when); }

  Patience patience_;
  bool asked_ = false;
  bool interrupted_ = false;  // By SIGINT, once.
  bool terminated_ = false;
  bool killed_ = false;
  std::optional<Clock::time_point> terminate_at_;
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace cohort::programs
