#pragma once

#include <signal.h>

#include <chrono>
#include <optional>

#include "base/unique_fd.h"

namespace cohort {

/// While it lives, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGCHLD do not interrupt this process but
/// are read from here. Make it before other threads start, so that none of them takes the signals.
class SignalWatch {
 public:
  SignalWatch();
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
