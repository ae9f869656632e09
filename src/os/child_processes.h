#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

namespace cohort {

/// Processes forked from this one to do a part of its work. They cannot outlive it: the kernel
/// kills them when this process ends in any way, and the destructor kills and reaps those that
/// still run. They are in process groups of their own, so a Ctrl-C at the terminal reaches only
/// this process, which decides what to do.
class ChildProcesses {
 public:
  struct End {
    std::size_t index = 0;  ///< The how-manieth started one.
    pid_t pid = 0;
    int status = 0;  ///< As waitpid reports it.
    std::int64_t peak_rss_bytes = 0;
  };

  ChildProcesses() = default;
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Forks. The child runs `body`, which must not throw, and exits with what it returns, without
  /// running the destructors and exit handlers of this program. Its standard output and error go to
  /// `log`; where that is empty they stay as they are.
  /// Returns its index, see End.
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

 private:
  struct Child {
    pid_t pid = 0;
    bool running = true;
  };

  std::vector<Child> children_;
};

}  // namespace cohort
