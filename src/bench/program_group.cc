#include "bench/program_group.h"

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>

#include "base/deadline.h"
#include "base/fail.h"
#include "base/unique_fd.h"
#include "bench/measured_process.h"

namespace cohort::bench {
namespace {

/// What a program prints goes to memory: a pipe would have to be emptied while it is measured.
UniqueFd memory_file() {
  UniqueFd file(memfd_create("output", MFD_CLOEXEC));
  if (!file) fail_errno("cannot create a file for the output of a measured program");
  return file;
}

std::string content(const UniqueFd& file) {
  std::string bytes;
  char buffer[4096];
  for (off_t at = 0;;) {
    const ssize_t count = pread(file.get(), buffer, sizeof buffer, at);
    if (count <= 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(count));
    at += count;
  }
}

/// The last that is not empty: mostly what a program says of its failure.
std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string line, last;
  while (std::getline(lines, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

/// While it lives, this process is in a network namespace of its own, and so is what it starts;
/// what was started there stays there. The default congestion control of many machines, bbr, is
/// slow on loopback, and only a namespace can choose another for programs that do not ask. A
/// machine that forbids it changes nothing.
class PrivateNetwork {
 public:
  PrivateNetwork() : old_(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {
    if (!old_ || unshare(CLONE_NEWNET) != 0) return;
    entered_ = true;
    if (!loopback_up()) {
      leave();
      return;
    }
    const UniqueFd control(open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY | O_CLOEXEC));
    if (control) [[maybe_unused]]
      const auto written = write(control.get(), "reno", 4);
  }
  ~PrivateNetwork() { leave(); }
  PrivateNetwork(const PrivateNetwork&) = delete;
  PrivateNetwork& operator=(const PrivateNetwork&) = delete;

 private:
  static bool loopback_up() {
    const UniqueFd any_socket(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback = {};
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    return ioctl(any_socket.get(), SIOCSIFFLAGS, &loopback) == 0;
  }

  void leave() {
    if (entered_) setns(old_.get(), CLONE_NEWNET);
    entered_ = false;
  }

  UniqueFd old_;
  bool entered_ = false;
};

/// One program that runs, from its start to the end of everything it has started.
class Child {
 public:
  explicit Child(const Program& program)
      : name_(program.words.at(0)), output_(memory_file()), errors_(memory_file()) {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) fail_errno("cannot start " + name_);
    if (pid_ == 0) become(program, parent);
    setpgid(pid_, pid_);
    pidfd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }

  Child(Child&& other) noexcept = default;

  ~Child() {
    if (!pidfd_) return;  // Moved from.
    // Also after a good end: nothing that the program left running may disturb the next one.
    kill(-pid_, SIGKILL);
    if (!ended_) waitpid(pid_, nullptr, 0);
  }

  int pidfd() const { return pidfd_.get(); }
  bool ended() const { return ended_; }
  std::string output() const { return content(output_); }

  void reap() {
    waitpid(pid_, &status_, 0);
    ended_ = true;
  }

  bool succeeded() const { return ended_ && WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }

  std::string problem() const {
    const std::string how = !ended_ ? "did not end in time"
                            : WIFSIGNALED(status_)
                                ? fmt::format("was ended by signal {}", WTERMSIG(status_))
                                : fmt::format("ended with code {}", WEXITSTATUS(status_));
    const std::string said = last_line(content(errors_));
    return fmt::format("{} {}{}{}", name_, how, said.empty() ? "" : ": ", said);
  }

 private:
  /// In the forked process, which ends where the program cannot be run: with 127, as shells do, and
  /// the reason on its standard error.
  [[noreturn]] void become(const Program& program, pid_t parent) {
    setpgid(0, 0);
    die_with_parent();
    if (getppid() != parent) _exit(127);
    dup2(output_.get(), STDOUT_FILENO);
    dup2(errors_.get(), STDERR_FILENO);
    if (program.core >= 0) pin_to_core_of(0, {program.core});
    for (const auto& [key, value] : program.environment) {
      value ? setenv(key.c_str(), value->c_str(), 1) : unsetenv(key.c_str());
    }
    std::vector<char*> words;
    for (const auto& word : program.words) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    dprintf(STDERR_FILENO, "%s\n", std::strerror(errno));
    _exit(127);
  }

  std::string name_;
  UniqueFd output_;
  UniqueFd errors_;
  UniqueFd pidfd_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

/// Waits until one more child has ended and reaps all that have; false where the deadline passed.
bool reap_some(std::vector<Child>& children, const Deadline& deadline) {
  std::vector<pollfd> polls;
  for (const auto& child : children) {
    polls.push_back({child.ended() ? -1 : child.pidfd(), POLLIN, 0});
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining());
  const int ready = poll(polls.data(), polls.size(), static_cast<int>(left.count()) + 1);
  for (std::size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].revents != 0) children[i].reap();
  }
  return ready != 0 || !deadline.passed();
}

}  // namespace

// The programs of one contender: all start at once, each on its core, in a process group of its
// own, with its output in memory. When one fails the others are ended, since they may be waiting
// for it; when all is over nothing of them is left, whatever they have started themselves.
Finished run_together(const ProgramGroup& group) {
  const auto deadline = Deadline::in_seconds(group.timeout_seconds);
  std::optional<PrivateNetwork> network;
  if (group.private_network) network.emplace();
  Finished finished;
  finished.started_at = seconds_now();
  std::vector<Child> children;
  children.reserve(group.programs.size());
  for (const auto& program : group.programs) children.emplace_back(program);
  network.reset();

  // Until the last has ended, one has failed, or the time is over. Children that still run then are
  // killed by their destructors.
  const auto running = [](const Child& child) { return !child.ended(); };
  const auto failed = [](const Child& child) { return child.ended() && !child.succeeded(); };
  bool in_time = true;
  while (in_time && std::any_of(children.begin(), children.end(), running) &&
         std::none_of(children.begin(), children.end(), failed)) {
    in_time = reap_some(children, deadline);
  }

  finished.succeeded = true;
  for (const auto& child : children) {
    finished.outputs.push_back(child.output());
    if (child.succeeded()) continue;
    // The first cause: one that was only still running when another failed is not to blame.
    if (finished.problem.empty() || failed(child)) finished.problem = child.problem();
    finished.succeeded = false;
  }
  return finished;
}

bool in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    if (access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace cohort::bench
