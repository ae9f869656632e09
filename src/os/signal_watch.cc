#include "os/signal_watch.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fail.h"

namespace cohort::os {
namespace {

/// Who started this process with it ignored (nohup, the background job of a script) meant it.
bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalWatch::SignalWatch(std::initializer_list<int> signals) {
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int signal : signals) {
    if (!is_ignored(signal)) ::sigaddset(&watched, signal);
  }
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

}  // namespace cohort::os
