#include "os/child_processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/fail.h"
#include "base/files.h"
#include "base/unique_fd.h"
#include "os/this_process.h"

namespace cohort::os {
namespace {

void redirect_output(const std::filesystem::path& log) {
  const UniqueFd file = open_to_write(log, Existing::append);
  ::dup2(file.get(), STDOUT_FILENO);
  ::dup2(file.get(), STDERR_FILENO);
}

/// What a child does before anything of its own. It dies with its parent, by the kernel's hand, and
/// has a process group of its own, so that a Ctrl-C at the terminal reaches the parent alone, who
/// then asks the children in its own way.
void become_child(pid_t parent, ChildProcesses::Session session) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // The parent died before the line above.
  if (session == ChildProcesses::Session::own) {
    ::setsid();  // Which makes a group, too.
  } else {
    ::setpgid(0, 0);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

// The child never returns from here: it ends by _exit(), which runs nobody's destructors. What was
// in the parent's output buffers is written before the fork, or both would write it.
std::size_t ChildProcesses::start(const std::function<int()>& body,
                                  const std::filesystem::path& log) {
  flush_output();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) fail_errno("cannot start a process");
  if (pid == 0) {
    become_child(parent, session_);
    int code = 1;
    try {
      if (!log.empty()) redirect_output(log);
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    } catch (...) {
      // Nothing may unwind into the frames of the parent's program.
      std::fprintf(stderr, "an exception that is no std::exception\n");
    }
    flush_output();
    ::_exit(code);
  }
  children_.push_back({pid, true});
  return children_.size() - 1;
}

std::vector<ChildProcesses::End> ChildProcesses::reap() {
  std::vector<End> ends;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    End end{.index = i, .pid = child.pid};
    rusage usage{};
    if (!child.running || ::wait4(child.pid, &end.status, WNOHANG, &usage) != child.pid) continue;
    child.running = false;
    end.peak_rss_bytes = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
    ends.push_back(end);
  }
  return ends;
}

std::size_t ChildProcesses::running() const {
  return static_cast<std::size_t>(
      std::count_if(children_.begin(), children_.end(), [](const Child& c) { return c.running; }));
}

void ChildProcesses::signal(std::size_t index, int signal) {
  if (children_[index].running) ::kill(children_[index].pid, signal);
}

void ChildProcesses::signal_all(int signal) {
  for (const Child& child : children_) {
    if (child.running) ::kill(child.pid, signal);
  }
}

void ChildProcesses::signal_groups(int signal) {
  for (const Child& child : children_) {
    if (child.running) ::kill(-child.pid, signal);
  }
}

ChildProcesses::~ChildProcesses() {
  signal_all(SIGKILL);
  for (const Child& child : children_) {
    if (child.running) ::waitpid(child.pid, nullptr, 0);
  }
}

}  // namespace cohort::os
