#include "programs/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/deadline.h"
#include "cluster/exit_code.h"
#include "os/child_processes.h"
#include "os/descendants.h"
#include "os/signal_watch.h"

namespace cohort::programs {
namespace {

using namespace std::chrono_literals;

constexpr auto kAfterSecondInterrupt = 10s;
constexpr auto kUntilKilled = 5s;
constexpr auto kUntilASignal = std::chrono::milliseconds(1h);

/// Whoever started this process may have closed its streams, and a pipe of ours must not take the
/// place of one; or have it ignore the ends of its children.
void repair_inheritance() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
  ::signal(SIGCHLD, SIG_DFL);
}

int become_launcher(const std::function<int()>& body, pid_t guard) {
  ::prctl(PR_SET_PDEATHSIG, guard_is_gone());
  if (::getppid() != guard) return cluster::kExitFailed;  // It has gone before the line above.
  return body();
}

/// The guard's part while the launcher lives.
class Guard {
 public:
  explicit Guard(const std::function<int()>& body) {
    os::adopt_orphans();
    launcher_.start([&body, self = ::getpid()] { return become_launcher(body, self); }, {});
  }

  /// Returns how the launcher ended, as waitpid reports it.
  int wait() {
    for (;;) {
      if (const auto signal = signals_.wait(time_left())) pass_on(*signal);
      for (const auto& end : launcher_.reap()) return end.status;
      os::reap_orphans([&](pid_t pid) { return pid == launcher_.pid(0); });
      if (kill_at_ && kill_at_->passed()) launcher_.signal(0, SIGKILL);
    }
  }

 private:
  std::chrono::milliseconds time_left() const {
    if (!kill_at_) return kUntilASignal;
    return std::max(1ms, std::chrono::ceil<std::chrono::milliseconds>(kill_at_->remaining()));
  }

  void pass_on(int signal) {
    if (signal == SIGCHLD) return;
    launcher_.signal(0, signal);
    if (signal == SIGINT && ++interrupts_ == 2) kill_at_ = Deadline::in(kAfterSecondInterrupt);
  }

  os::SignalWatch signals_{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
  os::ChildProcesses launcher_{os::ChildProcesses::Session::own};
  int interrupts_ = 0;
  std::optional<Deadline> kill_at_;
};

}  // namespace

int run_guarded(const std::function<int()>& body) {
  repair_inheritance();
  const int status = Guard(body).wait();
  const bool all_ended = os::end_descendants(Deadline::in(kUntilKilled));
  if (!all_ended) fmt::print(stderr, "cohort: a process of this run cannot be ended\n");
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  fmt::print(stderr, "cohort: the launcher was killed by SIG{}; all ranks were ended\n",
             ::sigabbrev_np(WTERMSIG(status)));
  return cluster::exit_code_of_signal(WTERMSIG(status));
}

}  // namespace cohort::programs
