#pragma once

#include <signal.h>

#include <chrono>
#include <initializer_list>
#include <optional>

#include "base/unique_fd.h"

namespace cohort::os {

/// Signals as data: a launcher reads them where it is ready for them, instead of being interrupted
/// in the middle of anything.

/// Those by which a run is asked to stop; and with SIGCHLD, by which its launcher is told that a
/// process has ended.
inline constexpr std::initializer_list<int> kStopSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
inline constexpr std::initializer_list<int> kLauncherSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1,
                                                                SIGCHLD};

/// While it lives, `signals` do not interrupt this process but are read from here. Make it before
/// other threads start: they inherit that the signals are blocked, where otherwise one of them
/// would take a signal. A signal that this process ignores stays ignored. The destructor unblocks
/// what was not blocked before, so make and destroy it on the same thread.
class SignalWatch {
 public:
  explicit SignalWatch(std::initializer_list<int> signals = kLauncherSignals);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// The next signal, or nothing after `at_most`.
  std::optional<int> wait(std::chrono::milliseconds at_most);

 private:
  sigset_t before_;  // What was blocked before.
  UniqueFd fd_;      // A signalfd.
};

}  // namespace cohort::os
