#pragma once

#include <signal.h>

#include <chrono>
#include <initializer_list>
#include <optional>

#include "base/unique_fd.h"

namespace cohort {

/// Those by which a run is asked to stop, or its launcher told that a process has ended.
inline constexpr std::initializer_list<int> kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
inline constexpr std::initializer_list<int> kLauncherSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1,
                                                                SIGCHLD};

/// While it lives, `signals` do not interrupt this process but are read from here. Make it before
/// other threads start, so that none of them takes the signals. A signal that this process ignores
/// stays ignored.
class SignalWatch {
 public:
  explicit SignalWatch(std::initializer_list<int> signals = kLauncherSignals);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// The next signal, or nothing after `at_most`.
  std::optional<int> wait(std::chrono::milliseconds at_most);

 private:
  sigset_t before_;
  UniqueFd fd_;
};

}  // namespace cohort
