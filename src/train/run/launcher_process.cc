#include "train/run/launcher_process.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "base/deadline.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/json.h"
#include "job/job_file.h"
#include "kernel/program_start.h"
#include "os/signal_watch.h"
#include "os/this_process.h"
#include "train/run/run_here.h"
#include "train/run/summary_text.h"
#include "train/worker.h"

namespace cohort::training {
namespace {

using MessageJson = nlohmann::ordered_json;

/// Tells a program started anew that it is a launcher: "PARENT TASK MESSAGES", the parent's process
/// and the descriptors of its task and for its messages.
constexpr const char* kLauncherMark = "COHORT_LAUNCHER";

/// A summary of a thousand tasks has some hundred kilobytes.
constexpr std::size_t kLongestMessage = 64 << 20;

/// How long a handle that is destroyed waits for workers that were just killed.
constexpr auto kLastMoment = std::chrono::seconds(1);

/// Where nobody listens any more that is an error, not a death.
void send_message(int messages, const MessageJson& message) {
  ::signal(SIGPIPE, SIG_IGN);
  write_all(messages, message.dump(-1, ' ', false, MessageJson::error_handler_t::replace) + "\n",
            "the pipe to the run's caller");
}

/// Ends this process with its parent's thread, and keeps the terminal's signals from it. Requests
/// to stop wait until they are read (UserRequests), however early or late they come.
void become_launcher(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // It died before the line above.
  ::setpgid(0, 0);
  // What it writes to a terminal, it writes as a process of the background.
  ::signal(SIGTTOU, SIG_IGN);
  for (const int signal : os::kLauncherSignals) ::signal(signal, SIG_DFL);
  sigset_t stops;
  ::sigemptyset(&stops);
  for (const int signal : os::kStopSignals) ::sigaddset(&stops, signal);
  ::sigprocmask(SIG_SETMASK, &stops, nullptr);
}

void use_cores(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
  }
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    fail(ErrorCode::invalid, "a run shall use cores {}, none of which this process may use",
         fmt::join(cores, ", "));
  }
}

/// The whole life of a launcher.
[[noreturn]] void launch_and_exit(const std::function<LauncherProcess::Task()>& get_task,
                                  int messages) {
  int code = 0;
  try {
    try {
      const LauncherProcess::Task task = get_task();
      use_cores(task.cores);
      const Summary summary = run_here(
          task.job, task.options, task.environment,
          [&](const std::string& run_dir, std::int64_t after_step) {
            send_message(messages, {{"run_dir", text_json(run_dir)}, {"after_step", after_step}});
          });
      send_message(messages, {{"summary", to_json(summary)},
                              {"run_dir", text_json(summary.run_dir)},
                              {"exit_code", summary.exit_code}});
      code = summary.exit_code;
    } catch (...) {
      const Error error = current_error();
      send_message(messages, {{"error", error.what()},
                              {"code", static_cast<int>(error.code())},
                              {"rank", error.rank().value_or(-1)}});
      code = 1;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());  // Nobody listens any more.
  }
  os::flush_output();
  ::_exit(code);
}

// ---- a program started anew

/// Names of files and an environment need not be UTF-8, which JSON must be.
MessageJson task_json(const LauncherProcess::Task& task) {
  const RunOptions& options = task.options;
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const auto& [name, value] : task.environment) {
    names.push_back(name);
    values.push_back(value);
  }
  return {{"job", job::to_toml(task.job)},
          {"run_dir", text_json(options.run_dir)},
          {"resume", text_json(options.resume)},
          {"quiet", options.quiet},
          {"json_log", options.json_log},
          {"faults", text_json(options.faults)},
          {"cores", task.cores},
          {"variables", text_json(names)},
          {"values", text_json(values)}};
}

UniqueFd memory_with(const std::string& text) {
  UniqueFd memory(::memfd_create("cohort", MFD_CLOEXEC));
  if (!memory) fail_errno("cannot share memory with a run's launcher");
  write_all(memory.get(), text, "memory shared with a run's launcher");
  return memory;
}

std::string descriptor_path(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

LauncherProcess::Task task_from(int descriptor) {
  const auto text = parse_json(read_file(descriptor_path(descriptor)));
  const JsonFields fields(text, "a launcher's task");
  LauncherProcess::Task task;
  const UniqueFd job = memory_with(fields.text("job"));
  task.job = job::load_job(descriptor_path(job.get()));
  task.options.run_dir = fields.any_text("run_dir");
  task.options.resume = fields.any_text("resume");
  task.options.quiet = fields.flag("quiet");
  task.options.json_log = fields.flag("json_log");
  task.options.faults = fields.any_text("faults");
  text.at("cores").get_to(task.cores);
  const std::vector<std::string> values = fields.texts("values");
  for (std::size_t i = 0; const std::string& name : fields.texts("variables")) {
    task.environment[name] = values.at(i++);
  }
  return task;
}

/// The door in main: goes on only where this process is no launcher.
void enter_launcher() {
  const char* mark = std::getenv(kLauncherMark);
  if (mark == nullptr) return;
  int parent = 0;
  int task = -1;
  int messages = -1;
  if (std::sscanf(mark, "%d %d %d", &parent, &task, &messages) != 3) return;
  ::unsetenv(kLauncherMark);
  become_launcher(parent);
  ::fcntl(task, F_SETFD, FD_CLOEXEC);
  ::fcntl(messages, F_SETFD, FD_CLOEXEC);
  launch_and_exit([task] { return task_from(task); }, messages);
}

[[maybe_unused]] const bool has_door = (kernel::set_main_door(enter_launcher), true);

/// In the thread that made it.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// The numbers that its descriptors have in a program started anew.
constexpr int kTaskDescriptor = 3;
constexpr int kMessagesDescriptor = 4;

/// A copy that is none of these numbers, and is closed in every program that somebody starts.
UniqueFd out_of_the_way(int descriptor) {
  UniqueFd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, kMessagesDescriptor + 1));
  if (!copy) fail_errno("cannot pass a descriptor to a run's launcher");
  return copy;
}

/// What becomes of descriptors in a program started anew.
class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  void pass(int descriptor, int as) {
    ::posix_spawn_file_actions_adddup2(&actions_, descriptor, as);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// posix_spawn runs nothing of what libraries want to be run before a fork: OpenBLAS would wait for
// its threads there, and other threads of this process for OpenBLAS, both for ever.
pid_t start_anew(const LauncherProcess::Task& task, int messages) {
  const UniqueFd memory = memory_with(task_json(task).dump());
  const UniqueFd task_copy = out_of_the_way(memory.get());
  const UniqueFd messages_copy = out_of_the_way(messages);
  SpawnActions descriptors;
  descriptors.pass(task_copy.get(), kTaskDescriptor);
  descriptors.pass(messages_copy.get(), kMessagesDescriptor);
  std::vector<std::string> words = os::command_line();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string mark =
      fmt::format("{}={} {} {}", kLauncherMark, ::getpid(), kTaskDescriptor, kMessagesDescriptor);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(mark.data());
  variables.push_back(nullptr);
  pid_t pid = 0;
  const int problem = ::posix_spawn(&pid, "/proc/self/exe", descriptors.get(), nullptr,
                                    arguments.data(), variables.data());
  if (problem != 0) fail_errno("cannot start a run's launcher", problem);
  return pid;
}

pid_t fork_launcher(const LauncherProcess::Task& task, int messages) {
  os::flush_output();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) fail_errno("cannot start a run's launcher");
  if (pid > 0) return pid;
  become_launcher(parent);
  launch_and_exit([&task] { return task; }, messages);
}

}  // namespace

bool has_own_functions(const Job& job) {
  return job.model.make || job.data.own_train || job.data.own_validation || job.train.own_loss;
}

LauncherProcess::LauncherProcess(const Task& task, bool anew) {
  // A launcher that is forked meanwhile would have the pipe of this one, too.
  static std::mutex one_at_a_time;
  const std::lock_guard only(one_at_a_time);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot make a pipe to a run's launcher");
  messages_ = UniqueFd(ends[0]);
  const UniqueFd sending(ends[1]);
  ::fcntl(messages_.get(), F_SETFL, O_NONBLOCK);
  {
    const AllSignalsBlocked blocked;  // The thread inherits it: no signal is for it.
    keeper_ = std::thread([this, &task, anew, &sending] { keep(task, anew, sending.get()); });
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return started_ || problem_; });
  if (started_) return;
  lock.unlock();
  keeper_.join();
  std::rethrow_exception(problem_);
}

// A thread of its own has computed nothing, so that a forked child of it can compute with several
// threads, whatever the caller's have done: OpenMP keeps its threads by the one that uses them.
void LauncherProcess::keep(const Task& task, bool anew, int messages) {
  try {
    const bool can_start_anew = kernel::main_has_door() && !has_own_functions(task.job);
    const pid_t pid =
        anew && can_start_anew ? start_anew(task, messages) : fork_launcher(task, messages);
    const std::lock_guard lock(mutex_);
    pid_ = pid;
    started_ = true;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    problem_ = std::current_exception();
  }
  changed_.notify_all();  // From here on `task` may be gone.
  if (!started_) return;
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  const std::lock_guard lock(mutex_);
  ::waitpid(pid_, &status_, 0);
  ended_ = true;
  changed_.notify_all();
}

LauncherProcess::~LauncherProcess() {
  if (!keeper_.joinable()) return;
  signal(SIGKILL);
  keeper_.join();
  // Its workers end with it, a moment later; the last of them closes the pipe.
  for (const Deadline deadline = Deadline::in(kLastMoment); !deadline.passed() && !over_;) {
    buffer_.clear();
    next_message();
    if (!at_end_) wait(std::chrono::milliseconds(10));
    over_ = at_end_;
  }
}

void LauncherProcess::signal(int signal) {
  const std::lock_guard lock(mutex_);
  if (started_ && !ended_) ::kill(pid_, signal);
}

bool LauncherProcess::has_ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

// The pipe may stay open in a process that somebody has started and forgotten. So it is over, too,
// once the launcher has ended and there is nothing left to read.
std::optional<std::string> LauncherProcess::next_message() {
  for (;;) {
    const bool ended = has_ended();
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      std::string message = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return message;
    }
    std::array<char, 65536> part;
    const auto count = ::read(messages_.get(), part.data(), part.size());
    if (count > 0) buffer_.append(part.data(), static_cast<std::size_t>(count));
    if (buffer_.size() > kLongestMessage) fail(ErrorCode::corrupt, "a run's launcher raves");
    if (count == 0) at_end_ = true;
    if (count == 0 || (count < 0 && errno != EINTR)) {
      over_ = at_end_ || ended;
      return std::nullopt;
    }
  }
}

int LauncherProcess::status() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_; });
  return status_;
}

void LauncherProcess::wait(std::chrono::milliseconds at_most) const {
  pollfd readable{messages_.get(), POLLIN, 0};
  ::poll(&readable, 1, static_cast<int>(at_most.count()));
}

}  // namespace cohort::training
