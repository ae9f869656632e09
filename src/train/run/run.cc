#include <cohort/run.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>

#include "base/fail.h"
#include "base/json.h"
#include "cluster/launch_environment.h"
#include "os/signal_watch.h"
#include "train/loop/chief_log.h"
#include "train/run/launcher_process.h"
#include "train/run/run_here.h"
#include "train/run/summary_text.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;

/// How long a wait for messages is at most, so that steps are told while there are none.
constexpr auto kRunTick = 10ms;

}  // namespace

std::map<std::string, std::string> launch_variables() {
  std::map<std::string, std::string> found;
  for (const char* name : cluster::launch_variables()) {
    if (const char* value = std::getenv(name)) found[name] = value;
  }
  return found;
}

/// A run in hand: a process, its launcher, and what it has said so far. The caller's thread does
/// everything here, when it polls or waits: nothing happens between two calls, and nothing is lost
/// by calling seldom, since messages wait in their pipe and steps in the run's own file.
struct Run::State {
  State(const Job& job, const StartOptions& start_options, bool anew)
      : strategy(job.strategy.kind),
        options(start_options),
        signals(start_options.signals ? std::make_unique<os::SignalWatch>(os::kStopSignals)
                                      : nullptr),
        launcher({.job = job,
                  .options = start_options.run,
                  .cores = start_options.cores,
                  .environment = start_options.environment},
                 anew) {}

  void take(const std::string& text) {
    const auto message = parse_json(text);
    if (message.contains("run_dir"))
      run_dir = JsonFields(message, "a launcher's message").any_text("run_dir");
    if (message.contains("after_step")) {
      metrics.begin_after(message.at("after_step").get<std::int64_t>());
    }
    if (message.contains("error")) {
      failure.emplace(static_cast<ErrorCode>(message.at("code").get<int>()),
                      message.at("error").get<std::string>());
      if (const int rank = message.at("rank").get<int>(); rank >= 0) failure->about_rank(rank);
    }
    if (!message.contains("summary")) return;
    summary = training::summary_from_json(message.at("summary").get<std::string>(),
                                          "a launcher's message");
    summary->run_dir = run_dir;
    summary->exit_code = message.at("exit_code").get<int>();
  }

  void tell_steps() {
    if (options.on_step && !run_dir.empty()) metrics.read(run_dir, options.on_step);
  }

  /// A signal is not queued: the second is another one, and whoever asks once more does not care.
  void ask_to_stop(int signal) {
    if (asked == 0) asked = signal;
    ++asks;
    if (asks == 2) signal = asked == SIGTERM ? SIGINT : SIGTERM;
    launcher.signal(asks > 2 ? SIGKILL : signal);
  }

  /// Of a run whose launcher said nothing at its end.
  Summary without_summary() {
    const int status = launcher.status();
    if (failure) throw *failure;
    if (asks > 2 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
      Summary killed;
      killed.status = "interrupted";
      killed.strategy = strategy;
      killed.run_dir = run_dir;
      killed.exit_code = 128 + asked;
      return killed;
    }
    throw Error(ErrorCode::peer_lost,
                WIFSIGNALED(status)
                    ? fmt::format("the run's launcher, process {}, was ended by signal {}",
                                  launcher.pid(), WTERMSIG(status))
                    : fmt::format("the run's launcher, process {}, ended with code {}",
                                  launcher.pid(), WEXITSTATUS(status)));
  }

  std::string strategy;
  StartOptions options;
  std::unique_ptr<os::SignalWatch> signals;  // Before the launcher, so that none is missed.
  training::LauncherProcess launcher;
  std::string run_dir;
  training::MetricsTail metrics;
  std::optional<Summary> summary;
  std::optional<Error> failure;
  int asked = 0;  // The signal by which the run was asked to stop first,
  int asks = 0;   // and how often it was.
};

Run::Run(std::unique_ptr<State> state) : state_(std::move(state)) {}
Run::Run(Run&& other) noexcept = default;
Run& Run::operator=(Run&& other) noexcept = default;
Run::~Run() = default;

bool Run::poll() {
  while (const auto message = state_->launcher.next_message()) state_->take(*message);
  state_->tell_steps();
  return state_->launcher.is_over();
}

void Run::stop() {
  state_->ask_to_stop(SIGINT);
}

Summary Run::wait() {
  while (!poll()) {
    if (!state_->signals) {
      state_->launcher.wait(kRunTick);
    } else if (const auto signal = state_->signals->wait(kRunTick)) {
      state_->ask_to_stop(*signal);
    }
  }
  return state_->summary ? *state_->summary : state_->without_summary();
}

const std::string& Run::run_dir() const {
  return state_->run_dir;
}

std::int64_t Run::launcher() const {
  return state_->launcher.pid();
}

Run start(const Job& job, const StartOptions& options) {
  training::check_run(job, options.environment);
  return Run(std::make_unique<Run::State>(job, options, true));
}

// Forked, as all do that have nothing else to do meanwhile: that takes no time. And a fork ends
// OpenBLAS' idle threads, which would get the signals that are the run's.
Summary train(const Job& job, const RunOptions& options) {
  const StartOptions start_options{
      .run = options, .environment = launch_variables(), .signals = true};
  training::check_run(job, start_options.environment);
  return Run(std::make_unique<Run::State>(job, start_options, false)).wait();
}

}  // namespace cohort
