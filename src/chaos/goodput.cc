#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/deadline.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/random.h"
#include "chaos/chaos.h"
#include "chaos/faults/disturbance.h"
#include "chaos/watch/leftovers.h"
#include "chaos/watch/run_watch.h"
#include "chaos/watch/training_process.h"

namespace cohort::chaos {
namespace {

using namespace std::chrono_literals;

/// How often the files of a run are looked at.
constexpr auto kSliceTick = 10ms;
constexpr double kSecondsPerKill = 60;
constexpr double kSliceSeconds = 1;
/// The share of the quiet run's speed that shall be left.
constexpr double kGoal = 0.95;

/// A run without an end, of which a slice is run now and then; between slices it stands still with
/// all its tasks. Two of them take turns, so that both get the same share of a machine whose speed
/// changes. Its time is that of its slices only.
class SlicedRun {
 public:
  /// Starts it and stops it again when it has made its first step. Throws Error where it ends
  /// before.
  SlicedRun(const ChaosOptions& options, const TestedStrategy& strategy, const std::string& kind)
      : options_(options),
        run_dir_(options.folder / (kind + "-" + strategy.name)),
        watch_(run_dir_),
        training_(train_words(options, strategy, run_dir_,
                              {"train.epochs=0", "train.steps=1000000000", "log.every_steps=10"}),
                  run_dir_.string() + ".log") {
    while (watch_.step() == 0) look();
    stop();
  }

  /// Where `random` is not null, a worker is killed in every minute, at a moment it chooses.
  void run_slice(Random* random) {
    const std::int64_t first_step = watch_.step();
    const double before = seconds_;
    const auto start = Clock::now();
    go_on();
    while (seconds_ - before < kSliceSeconds) {
      look();
      seconds_ = before + seconds_since(start);
      if (random != nullptr) kill_if_due(*random);
    }
    steps_ += watch_.step() - first_step;
    stop();
  }

  double seconds() const { return seconds_; }
  double steps_per_second() const { return static_cast<double>(steps_) / seconds_; }
  int kills() const { return kills_; }

  /// Asks it to end and waits. Throws Error(timeout) where it does not within the seconds after
  /// which a run is taken to hang.
  void end() {
    go_on();
    training_.signal(SIGTERM);
    const Deadline deadline = Deadline::in_seconds(options_.hang_seconds);
    while (!training_.exit_code()) {
      if (deadline.passed()) {
        fail(ErrorCode::timeout, "the run in {} did not end when it was asked to",
             run_dir_.string());
      }
      std::this_thread::sleep_for(kSliceTick);
    }
  }

 private:
  /// Throws Error(peer_lost) where the run has ended: it has no end of its own.
  void look() {
    std::this_thread::sleep_for(kSliceTick);
    watch_.refresh();
    if (const auto code = training_.exit_code()) {
      fail(ErrorCode::peer_lost, "the run in {} did not survive: exit code {}", run_dir_.string(),
           *code);
    }
  }

  /// The launcher first and last, so that it sees no task that gives no sign of life.
  void stop() {
    training_.signal(SIGSTOP);
    for (const pid_t pid : child_processes(training_.pid())) ::kill(pid, SIGSTOP);
  }
  void go_on() {
    for (const pid_t pid : child_processes(training_.pid())) ::kill(pid, SIGCONT);
    training_.signal(SIGCONT);
  }

  /// One kill in every minute of this run, at a moment of it that `random` chooses; put off while
  /// not all workers are there.
  void kill_if_due(Random& random) {
    if (!next_kill_) next_kill_ = kSecondsPerKill * (kills_ + random.uniform(0.1, 0.9));
    if (seconds_ < *next_kill_) return;
    std::vector<SeenTask> workers;
    for (const SeenTask& task : watch_.tasks()) {
      if (task.rank) workers.push_back(task);
    }
    if (static_cast<int>(workers.size()) != options_.size.workers) return;
    if (!HeldProcess(workers[random.below(workers.size())].pid).signal(SIGKILL)) return;
    ++kills_;
    next_kill_.reset();
  }

  const ChaosOptions& options_;
  const std::filesystem::path run_dir_;
  RunWatch watch_;
  TrainingProcess training_;
  // Of all slices together.
  std::int64_t steps_ = 0;
  double seconds_ = 0;
  int kills_ = 0;
  // In seconds of this run; nothing where the next one is not drawn yet.
  std::optional<double> next_kill_;
};

/// What came out for one strategy.
struct Goodput {
  std::string strategy;
  double quiet = 0;  ///< Steps per second.
  double killed = 0;
  double seconds = 0;
  int kills = 0;
  double share() const { return killed / quiet; }
};

/// Both runs live at the same time, but only one of them runs.
Goodput measure(const ChaosOptions& options, const TestedStrategy& strategy) {
  Random random(options.seed);
  SlicedRun quiet(options, strategy, "quiet");
  SlicedRun killed(options, strategy, "killed");
  while (killed.seconds() < 60 * options.minutes) {
    quiet.run_slice(nullptr);
    killed.run_slice(&random);
  }
  quiet.end();
  killed.end();
  return {.strategy = strategy.name,
          .quiet = quiet.steps_per_second(),
          .killed = killed.steps_per_second(),
          .seconds = killed.seconds(),
          .kills = killed.kills()};
}

void tell(const Goodput& goodput) {
  fmt::print(
      "{:<18} {:>8.1f} steps/s left alone, {:>8.1f} with {} kills in {:.0f} s: goodput {:.1f} "
      "%{}\n",
      goodput.strategy, goodput.quiet, goodput.killed, goodput.kills, goodput.seconds,
      100 * goodput.share(), goodput.share() < kGoal ? ", below the goal of 95 %" : "");
  std::fflush(stdout);
}

}  // namespace

int run_goodput(const ChaosOptions& options) {
  auto strategies = choose_strategies(options.strategies, options.size);
  std::erase_if(strategies, [](const TestedStrategy& strategy) { return strategy.movement; });
  adopt_orphans();
  create_folder(options.folder);
  auto all = nlohmann::ordered_json::array();
  bool survived = true;
  for (const TestedStrategy& strategy : strategies) {
    try {
      const Goodput goodput = measure(options, strategy);
      tell(goodput);
      all.push_back({{"strategy", goodput.strategy},
                     {"quiet_steps_per_second", goodput.quiet},
                     {"steps_per_second", goodput.killed},
                     {"kills", goodput.kills},
                     {"seconds", goodput.seconds},
                     {"goodput", goodput.share()}});
    } catch (const Error& error) {
      survived = false;
      fmt::print("{:<18} {}\n", strategy.name, error.what());
    }
  }
  write_file_atomically(options.folder / "goodput.json", all.dump(2) + "\n");
  return survived ? 0 : 1;
}

}  // namespace cohort::chaos
