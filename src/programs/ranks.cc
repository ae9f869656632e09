#include "programs/ranks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/fail.h"
#include "os/cores.h"
#include "os/out_of_memory.h"
#include "os/run_program.h"
#include "os/tcp_socket.h"
#include "os/this_process.h"
#include "programs/rank_variables.h"

namespace cohort::programs {
namespace {

const char* variable_of_this_process(const char* name) {
  return std::getenv(name);
}

/// What a rank becomes, all of it made before the fork.
struct Image {
  const std::string& program;
  const os::ExecWords words;
  const os::ExecWords environment;
  std::array<int, 3> streams;  ///< Standard input, output, error.
  std::vector<int> cores;
};

/// In the child. Returns errno; where nothing failed it does not return.
int become(const Image& image) {
  for (int fd = 0; fd < 3; ++fd) {
    const int from = image.streams[static_cast<std::size_t>(fd)];
    // Standard input may be its own already, and is then not to be closed on exec.
    if (from != fd && ::dup2(from, fd) < 0) return errno;
  }
  os::run_on_cores(image.cores);
  ::execve(image.program.c_str(), image.words.get(), image.environment.get());
  return errno;
}

[[noreturn]] void fail_to_start(const std::string& program, int error) {
  if (error == ENOEXEC) {
    fail(ErrorCode::invalid,
         "cannot start {}: it is neither a program of this machine nor a script whose first line "
         "names, by #!, what runs it",
         excerpt(program));
  }
  if (error == ENOENT) {
    fail(ErrorCode::invalid,
         "cannot start {}: what its first line names by #!, or what loads it, is not there",
         excerpt(program));
  }
  if (error == EACCES || error == EPERM || error == E2BIG || error == ELOOP) {
    fail(ErrorCode::invalid, "cannot start {}: {}", excerpt(program),
         std::generic_category().message(error));
  }
  fail_errno("cannot start " + excerpt(program), error);
}

}  // namespace

Ranks::Ranks(const ProgramRun& run, int restart, Output& output)
    : run_(run),
      program_(find_program(run.command.front(), variable_of_this_process)),
      cores_(os::usable_core_numbers()),
      oom_kills_(os::out_of_memory_kills()) {
  const int cores = std::max<int>(1, static_cast<int>(cores_.size()));
  const auto compute =
      compute_variables(std::max(1, cores / run.ranks_per_host), variable_of_this_process);
  const int port =
      run.master_port != 0 ? run.master_port : os::own_port(os::listen_on(run.master_address, 0));
  for (int local_rank = 0; local_rank < run.ranks_per_host; ++local_rank) {
    auto variables =
        place_variables(run, {.local_rank = local_rank, .restart = restart, .port = port});
    variables.insert(variables.end(), compute.begin(), compute.end());
    start(local_rank, variables, output);
    logs_.push_back(output.log_of(local_rank));
  }
}

// Whether exec() was in vain is told through a pipe that closes by itself where it was not. It is
// waited for, so that a rank that is known is one that runs the program, in a session of its own.
void Ranks::start(int local_rank, const std::vector<std::string>& variables, Output& output) {
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<int, 2> ends{};
  if (!nothing || ::pipe2(ends.data(), O_CLOEXEC) != 0) fail_errno("cannot start a rank");
  const UniqueFd told(ends[0]);
  UniqueFd tell(ends[1]);
  const Image image{.program = program_,
                    .words = os::ExecWords(run_.command),
                    .environment = os::ExecWords(os::environment_with(variables)),
                    .streams = {rank_of(run_, local_rank) == 0 ? STDIN_FILENO : nothing.get(),
                                output.out_of(local_rank), output.err_of(local_rank)},
                    .cores = os::share_of_cores(cores_, local_rank, run_.ranks_per_host)};
  children_.start(
      [&] {
        const int error = become(image);
        return ::write(tell.get(), &error, sizeof error) == sizeof error ? 1 : 2;
      },
      {});
  UniqueFd(std::move(tell));
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(told.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count == sizeof error) fail_to_start(program_, error);
}

std::vector<RankEnd> Ranks::reap() {
  std::vector<RankEnd> ends;
  for (const os::ChildProcesses::End& end : children_.reap()) {
    const bool was_killed = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGKILL;
    ends.push_back({.rank = rank_of(run_, static_cast<int>(end.index)),
                    .pid = end.pid,
                    .status = end.status,
                    .out_of_memory = was_killed && os::out_of_memory_kills() > oom_kills_,
                    .log = logs_[end.index]});
  }
  if (!ends.empty()) oom_kills_ = os::out_of_memory_kills();
  return ends;
}

bool Ranks::knows(pid_t pid) const {
  for (std::size_t index = 0; index < logs_.size(); ++index) {
    if (children_.is_running(index) && children_.pid(index) == pid) return true;
  }
  return false;
}

}  // namespace cohort::programs
