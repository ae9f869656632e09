#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

namespace cohort::os {

/// Processes forked from this one to do a part of its work.
///
/// They cannot outlive it. Each asks the kernel, first of all, to be killed when its parent ends
/// (PR_SET_PDEATHSIG), then looks whether the parent has ended before that, and exits if so; and
/// the destructor kills and reaps those that still run. The kernel's promise is to the *thread*
/// that forked: call start() on a thread that lives as long as the children shall.
///
/// They are in process groups of their own, so a Ctrl-C at the terminal reaches only this process,
/// which decides what to do. All signals are unblocked in them, whatever this process watches
/// (os/signal_watch.h). Not thread-safe.
class ChildProcesses {
 public:
  struct End {
    std::size_t index = 0;  ///< As start() returned it: 0 for the first that was started.
    pid_t pid = 0;
    int status = 0;  ///< As waitpid reports it.
    std::int64_t peak_rss_bytes = 0;
  };

  /// Whether children keep the terminal of this process. With a session of their own they have
  /// none: what is typed there does not reach them as a signal, and they may read and write it as
  /// if they stood in the foreground.
  enum class Session { shared, own };

  explicit ChildProcesses(Session session = Session::shared) : session_(session) {}
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Forks. The child runs `body` and exits with what it returns, without running the destructors
  /// and exit handlers of this program; where `body` throws it prints the exception's words and
  /// exits with 1. Its standard output and error are appended to `log`; where that is empty they
  /// stay as they are. Returns its index, see End. Throws Error(io) where there cannot be another
  /// process.
  std::size_t start(const std::function<int()>& body, const std::filesystem::path& log);

  /// Those that ended since the last call. Does not wait.
  std::vector<End> reap();

  std::size_t running() const;
  pid_t pid(std::size_t index) const { return children_[index].pid; }

  bool is_running(std::size_t index) const { return children_[index].running; }

  /// Sends a signal to this one, if it still runs.
  void signal(std::size_t index, int signal);
  /// Sends a signal to all that still run.
  void signal_all(int signal);
  /// Sends a signal to all that still run and to what they have started, as far as it is in their
  /// process groups. One that has just been forked may not be in its group yet.
  void signal_groups(int signal);

 private:
  struct Child {
    pid_t pid = 0;
    bool running = true;
  };

  Session session_;
  std::vector<Child> children_;  // All that were ever started, by index.
};

}  // namespace cohort::os
