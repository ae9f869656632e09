#include "cluster/signal_watch.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fail.h"

namespace cohort {

SignalWatch::SignalWatch() {
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD})
    ::sigaddset(&watched, signal);
  ::sigprocmask(SIG_BLOCK, &watched, &before_);
  fd_ = UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) fail_errno("cannot watch signals");
}

SignalWatch::~SignalWatch() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalWatch::wait(std::chrono::milliseconds at_most) {
  pollfd readable{fd_.get(), POLLIN, 0};
  if (::poll(&readable, 1, static_cast<int>(at_most.count())) <= 0) return std::nullopt;
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace cohort
