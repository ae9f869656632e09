#include "chaos/watch/disturbed_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace cohort::chaos {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 5ms;
constexpr auto kNoteEvery = 500ms;
// What the kernel needs to end a launcher's tasks after it.
constexpr double kGoneSeconds = 2;

}  // namespace

DisturbedRun::DisturbedRun(const std::vector<std::string>& words,
                           const std::filesystem::path& run_dir, double hang_seconds,
                           const std::vector<std::string>& environment)
    : hang_seconds_(hang_seconds),
      watch_(run_dir),
      training_(words, run_dir.string() + ".log", environment),
      processes_({training_.pid()}) {}

// One look at everything, and the heart of every loop here: whoever waits for something to happen
// in the run calls it until it has. A run in which no step is made for `hang_seconds` is ended, so
// no loop goes on for ever.
void DisturbedRun::pump() {
  std::this_thread::sleep_for(kTick);
  exit_code_ = training_.exit_code();
  watch_.refresh();
  if (disturbance_) disturbance_->tick();
  note_processes();
  if (watch_.step() != last_step_) {
    last_step_ = watch_.step();
    last_progress_ = Clock::now();
  }
  if (!over() && seconds_since(last_progress_) > hang_seconds_) end_hanging();
}

void DisturbedRun::note_processes() {
  std::set<pid_t> now = {training_.pid()};
  for (const SeenTask& task : watch_.tasks()) now.insert(task.pid);
  // A group that is formed anew makes new memory in processes that are known.
  if (now == processes_ && Clock::now() - noted_ < kNoteEvery) return;
  processes_ = std::move(now);
  note_belongings();
  noted_ = Clock::now();
}

void DisturbedRun::end_hanging() {
  problems_.push_back(
      fmt::format("the run hangs: no step in {:.0f} s after step {}", hang_seconds_, last_step_));
  training_.signal(SIGKILL);
  while (!(exit_code_ = training_.exit_code())) std::this_thread::sleep_for(kTick);
}

std::vector<std::string> DisturbedRun::problems() {
  end_processes();
  for (std::string& line : belongings_.left()) problems_.push_back(std::move(line));
  return problems_;
}

// The launcher's tasks die with it, by the kernel's hand, a moment later. What is there after that
// moment has escaped, and is a violation; it is ended all the same, so that rounds do not disturb
// each other.
void DisturbedRun::end_processes() {
  const Deadline deadline = Deadline::in_seconds(kGoneSeconds);
  std::vector<pid_t> left;
  do {
    left = child_processes(::getpid());
    std::erase_if(left, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) == pid; });
    if (left.empty()) return;
    std::this_thread::sleep_for(kTick);
  } while (!deadline.passed());
  for (const pid_t pid : left) {
    problems_.push_back(fmt::format("process {} is left over", pid));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

}  // namespace cohort::chaos
