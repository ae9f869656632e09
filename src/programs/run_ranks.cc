#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "base/files.h"
#include "cluster/exit_code.h"
#include "os/descendants.h"
#include "os/signal_watch.h"
#include "programs/ending.h"
#include "programs/first_cause.h"
#include "programs/guard.h"
#include "programs/output.h"
#include "programs/program_run.h"
#include "programs/rank_variables.h"
#include "programs/ranks.h"

namespace cohort::programs {
namespace {

using namespace std::chrono_literals;

constexpr auto kLastMoment = 5s;
constexpr auto kLong = std::chrono::milliseconds(1h);

bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

/// LOGS/RUN_ID/restart-K, its user's alone.
std::filesystem::path log_folder(const ProgramRun& run, int restart) {
  if (run.logs.empty()) return {};
  create_folder(run.logs);
  const auto folder = run.logs / run.run_id / fmt::format("restart-{}", restart);
  create_private_folder(folder.parent_path());
  create_private_folder(folder);
  return folder;
}

Output::Options output_options(const ProgramRun& run, int restart) {
  std::vector<int> ranks(static_cast<std::size_t>(run.ranks_per_host));
  std::iota(ranks.begin(), ranks.end(), rank_of(run, 0));
  return {.ranks = std::move(ranks), .prefix = run.prefix, .logs = log_folder(run, restart)};
}

/// All ranks of this host, started once, until the last has ended.
class Attempt {
 public:
  Attempt(const ProgramRun& run, int restart, os::SignalWatch& signals)
      : signals_(signals),
        output_(output_options(run, restart)),
        ranks_(run, restart, output_),
        ending_(run.patience) {}

  /// What they have started and left behind has ended too when this returns.
  void run() {
    output_.begin();
    while (ranks_.running()) {
      if (const auto signal = signals_.wait(time_to_next())) handle(*signal);
      note_ends();
      if (const auto signal = ending_.due(Clock::now())) send(*signal);
    }
    os::end_descendants(Deadline::in(kLastMoment));
    output_.finish();
  }

  /// In the order in which they were noticed.
  const std::vector<RankEnd>& ends() const { return ends_; }
  /// The first signal by which this launcher was asked to end; 0: it was not.
  int stopped_by() const { return stopped_by_; }

 private:
  std::chrono::milliseconds time_to_next() const {
    const auto left = ending_.wait(Clock::now());
    return left ? std::chrono::ceil<std::chrono::milliseconds>(*left) : kLong;
  }

  void handle(int signal) {
    if (signal == SIGCHLD) return;
    if (signal == guard_is_gone()) return ending_.at_once(Clock::now());
    if (asks_to_end(signal)) return stop(signal);
    if (signal != SIGPIPE) return ranks_.signal(signal);
    note_stop(signal);  // Nobody reads any more.
    ending_.rank_failed(Clock::now());
  }

  void note_stop(int signal) {
    if (stopped_by_ == 0) stopped_by_ = signal;
  }

  void stop(int signal) {
    if (stopped_by_ == 0) {
      output_.say(
          fmt::format("cohort: passing SIG{} on to all ranks; SIGINT twice (Ctrl-C) ends "
                      "them at once",
                      ::sigabbrev_np(signal)));
    }
    note_stop(signal);
    send(signal);
    ending_.asked_by(signal, Clock::now());
  }

  void send(int signal) {
    ranks_.signal(signal);
    sent_.push_back(signal);
  }

  void note_ends() {
    for (RankEnd& end : ranks_.reap()) {
      end.told = !sent_.empty();
      end.by_us = WIFSIGNALED(end.status) && std::ranges::count(sent_, WTERMSIG(end.status)) > 0;
      if (!ended_well(end)) ending_.rank_failed(Clock::now());
      ends_.push_back(std::move(end));
    }
    os::reap_orphans([&](pid_t pid) { return ranks_.knows(pid); });
  }

  os::SignalWatch& signals_;
  Output output_;
  Ranks ranks_;
  Ending ending_;
  std::vector<RankEnd> ends_;
  std::vector<int> sent_;  // Signals by which all were told to end.
  int stopped_by_ = 0;
};

void say(const std::string& words) {
  fmt::print(stderr, "cohort: {}\n", words);
}

/// ", at restart 2": nothing at the first start.
std::string at_restart(int restart) {
  return restart == 0 ? "" : fmt::format(", at restart {}", restart);
}

int code_after_stop(const Attempt& attempt) {
  if (attempt.stopped_by() == SIGPIPE) return cluster::exit_code_of_signal(SIGPIPE);
  const RankEnd* cause = first_cause(attempt.ends());
  say(fmt::format("stopped by SIG{}", ::sigabbrev_np(attempt.stopped_by())));
  if (cause == nullptr) return 0;
  if (!cause->by_us) say(describe(*cause));
  return exit_code(*cause);
}

}  // namespace

int run_ranks(const ProgramRun& run) {
  os::SignalWatch signals(
      {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGCHLD, guard_is_gone()});
  os::adopt_orphans();
  for (int restart = 0;; ++restart) {
    Attempt attempt(run, restart, signals);
    attempt.run();
    if (attempt.stopped_by() != 0) return code_after_stop(attempt);
    const RankEnd* cause = first_cause(attempt.ends());
    if (cause == nullptr) return 0;
    const std::string failure = describe(*cause) + at_restart(restart);
    if (restart == run.max_restarts) {
      say(run.max_restarts == 0 ? failure : failure + "; no restarts are left");
      return exit_code(*cause);
    }
    say(fmt::format("{}; all ranks are started again (restart {} of {})", failure, restart + 1,
                    run.max_restarts));
  }
}

}  // namespace cohort::programs
