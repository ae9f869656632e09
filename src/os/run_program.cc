#include "os/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/fail.h"
#include "base/files.h"
#include "base/unique_fd.h"
#include "os/peer_watch.h"

extern char** environ;

namespace cohort::os {
namespace {

/// posix_spawn's two argument objects: where the program runs and writes, and its process group.
class SpawnSettings {
 public:
  SpawnSettings(const std::filesystem::path& folder, const std::filesystem::path& output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, 1, output.c_str(),
                                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&actions_, 1, 2);
    ::posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

pid_t start(const std::vector<std::string>& command, const SpawnSettings& settings) {
  const ExecWords words(command);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, command[0].c_str(), settings.actions(),
                                   settings.attributes(), words.get(), environ);
  if (error == ENOENT) {
    fail(ErrorCode::unsupported, "there is no program {} on PATH", command[0]);
  }
  if (error != 0) fail_errno("cannot start " + command[0], error);
  return pid;
}

/// Whether the process, a child that is not reaped, ends before the deadline.
bool ended_before(pid_t pid, Deadline deadline) {
  const UniqueFd process = open_pidfd(pid);
  if (!process) fail_errno("cannot watch a process");
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
    pollfd ended{process.get(), POLLIN, 0};
    const int ready = ::poll(&ended, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) fail_errno("cannot watch a process");
  }
}

int wait_status(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string last_line(const std::filesystem::path& file) {
  std::string text = read_file(file);
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string in_words(int status) {
  return WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                             : fmt::format("failed with exit code {}", WEXITSTATUS(status));
}

/// This program's file by its name, so that the process keeps its name too; where it was replaced
/// meanwhile, the link to what is running.
std::string program_file() {
  const std::filesystem::path link = "/proc/self/exe";
  std::error_code problem;
  const std::filesystem::path file = std::filesystem::read_symlink(link, problem);
  return !problem && std::filesystem::exists(file, problem) ? file : link;
}

}  // namespace

ExecWords::ExecWords(std::vector<std::string> words) : words_(std::move(words)) {
  for (std::string& word : words_) pointers_.push_back(word.data());
  pointers_.push_back(nullptr);
}

void exec_this_program(std::vector<std::string> words, std::vector<std::string> environment) {
  const ExecWords arguments(std::move(words));
  const ExecWords variables(std::move(environment));
  ::execve(program_file().c_str(), arguments.get(), variables.get());
}

// What it prints goes to a file and not through a pipe: nobody has to read while it runs, and what
// it has started, and left behind, cannot keep us waiting by holding the pipe open. The last line
// of it is what most programs say why they failed in.
void run_program(const std::vector<std::string>& command, const std::filesystem::path& folder,
                 Deadline deadline) {
  const TemporaryFolder scratch;
  const std::filesystem::path output = scratch.path() / "output";
  const pid_t pid = start(command, SpawnSettings(folder, output));
  const bool ended = ended_before(pid, deadline);
  if (!ended) ::kill(-pid, SIGKILL);
  const int status = wait_status(pid);
  const std::string line = fmt::format("{}", fmt::join(command, " "));
  if (!ended) fail(ErrorCode::timeout, "{} did not end in time: {}", line, last_line(output));
  if (status != 0) fail(ErrorCode::io, "{} {}: {}", line, in_words(status), last_line(output));
}

}  // namespace cohort::os
