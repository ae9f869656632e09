#include "chaos/round.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/fail.h"
#include "chaos/disturbed_run.h"

namespace cohort {
namespace {

constexpr std::int64_t kCheckpointsInRun = 20;

/// What the cause of a loss says when the fault was this one.
const char* words_of(Fault fault) {
  if (fault == Fault::freeze) return "no sign of life";
  return fault == Fault::exit ? "code 1" : "SIGKILL";
}

/// What is known of an event that is going on.
struct Going {
  Clock::time_point start = {};
  std::string role = {};  ///< Of the task, as files of the run say it.
  int number = 0;
  pid_t pid = 0;         ///< 0: not known; of a planted fault.
  std::size_t line = 0;  ///< The lines of the history before it.
  std::int64_t checkpoint = -1;
  std::optional<SeenLoss> loss = {};
  std::optional<SeenGroup> group = {};
  std::optional<double> progress_seconds = {};
};

class Round {
 public:
  Round(const ChaosOptions& options, RoundResult& result, std::int64_t steps)
      : options_(options),
        result_(result),
        strategy_(result.plan.strategy),
        size_{.workers = options.size.workers,
              .servers = strategy_.has_servers ? options.size.servers : 0},
        steps_(steps),
        run_(words(), result.run.run_dir, options.hang_seconds),
        watch_(run_.watch()) {}

  void play() {
    const auto start = Clock::now();
    for (const FaultEvent& event : result_.plan.events) {
      play(result_.events.emplace_back(
          EventResult{.event = event, .round = result_.plan.number, .strategy = strategy_.name}));
      run_.disturb(nullptr);
    }
    while (!run_.over()) run_.pump();
    result_.seconds = seconds_since(start);
    check_end();
  }

 private:
  std::vector<std::string> words() {
    result_.faults = planted_faults(result_.plan, size_, steps_);
    const auto every = std::max<std::int64_t>(1, steps_ / kCheckpointsInRun);
    auto all = train_words(options_, strategy_, result_.run.run_dir,
                           {fmt::format("checkpoint.every_steps={}", every)});
    if (!result_.faults.empty()) all.insert(all.end(), {"--faults", result_.faults});
    return all;
  }

  // ---- one event

  void play(EventResult& result) {
    result.happened = is_timed(result.event.fault) ? fire(result) : await_planted(result);
    if (!result.happened) return;
    run_.note_belongings();
    while (!is_done(result) && !run_.over()) run_.pump();
    // The task had done its work when the signal came: nobody made a step after it. Where somebody
    // did, a loss that is not told of is a violation, however well the run ended.
    const bool too_late = run_.ended_well() && ends_the_task(result.event) && !going_.loss &&
                          watch_.step() <= result.step;
    result.happened = !too_late;
    if (result.happened) check_event(result);
  }

  bool is_whole() const {
    const auto ranked = std::ranges::count_if(
        watch_.tasks(), [](const SeenTask& task) { return task.rank.has_value(); });
    const auto servers = std::ranges::count(watch_.tasks(), "server", &SeenTask::role);
    return ranked == size_.workers && servers == size_.servers;
  }

  /// False where the run was over before it was time.
  bool fire(EventResult& result) {
    const auto due = static_cast<std::int64_t>(result.event.at * static_cast<double>(steps_));
    while (!run_.over() && (watch_.step() < due || watch_.step() == 0 || !is_whole())) run_.pump();
    if (run_.over()) return false;
    const SeenTask task = target(result.event);
    begin(result, task.role, task.number);
    going_.pid = task.pid;
    if (result.event.fault == Fault::kill) {
      HeldProcess(task.pid).signal(SIGKILL);
    } else if (result.event.fault == Fault::freeze) {
      run_.disturb(std::make_unique<Disturbance>(task.pid, Disturbance::Kind::freeze,
                                                 options_.freeze_seconds));
    } else {
      run_.disturb(
          std::make_unique<Disturbance>(task.pid, Disturbance::Kind::slow, options_.slow_seconds));
    }
    return true;
  }

  SeenTask target(const FaultEvent& event) const {
    std::vector<SeenTask> candidates;
    for (const SeenTask& task : watch_.tasks()) {
      const bool fits = event.role == TaskRole::server  ? task.role == "server"
                        : event.role == TaskRole::chief ? task.rank == 0
                                                        : task.rank.value_or(0) > 0;
      if (fits) candidates.push_back(task);
    }
    std::ranges::sort(candidates, {}, [](const SeenTask& task) {
      return std::pair(task.rank.value_or(0), task.number);
    });
    return candidates[static_cast<std::size_t>(event.pick) % candidates.size()];
  }

  bool await_planted(EventResult& result) {
    const std::string role = result.event.role == TaskRole::server ? "server" : "worker";
    const int number = planted_task(result.event, size_);
    const auto is_it = [&](const SeenLoss& loss) {
      return loss.role == role && loss.number == number && !explained_.contains(loss.line);
    };
    while (!run_.over() && std::ranges::none_of(watch_.losses(), is_it)) run_.pump();
    const auto loss = std::ranges::find_if(watch_.losses(), is_it);
    if (loss == watch_.losses().end()) return false;
    begin(result, role, number);
    going_.line = loss->line;
    return true;
  }

  void begin(EventResult& result, const std::string& role, int number) {
    going_ = {.start = Clock::now(),
              .role = role,
              .number = number,
              .line = watch_.history_lines(),
              .checkpoint = watch_.checkpoint_step()};
    result.target = fmt::format("{} {}", role, number);
    result.step = watch_.step();
  }

  bool ends_the_task(const FaultEvent& event) const {
    if (event.fault == Fault::slow) return false;
    return event.fault != Fault::freeze || options_.freeze_seconds > options_.silence_lost_seconds;
  }

  /// Whether all that must be seen was seen: who was lost, a new group where nobody goes on without
  /// one, and a later step.
  bool is_done(EventResult& result) {
    const FaultEvent& event = result.event;
    if (!going_.loss) find_loss();
    const bool needs_group =
        ends_the_task(event) && (strategy_.lockstep || event.role != TaskRole::worker);
    if (needs_group && going_.loss) going_.group = watch_.group_after(going_.loss->line);
    const std::int64_t before = std::max(result.step, going_.group ? going_.group->step : 0);
    const bool later = (!needs_group || going_.group) && watch_.step() > before;
    if ((later || run_.ended_well()) && !going_.progress_seconds) {
      going_.progress_seconds = seconds_since(going_.start);
    }
    const bool waits_for_loss = ends_the_task(event) && !going_.loss;
    if (!going_.progress_seconds || waits_for_loss) return false;
    result.recovered = true;
    result.recovery_seconds = *going_.progress_seconds;
    return ends_the_task(event) || !run_.is_disturbed();
  }

  void find_loss() {
    for (const SeenLoss& loss : watch_.losses()) {
      const bool is_it = loss.line >= going_.line && loss.role == going_.role &&
                         loss.number == going_.number &&
                         (going_.pid == 0 || loss.pid == going_.pid);
      if (!is_it || !explained_.insert(loss.line).second) continue;
      going_.loss = loss;
      return;
    }
  }

  // ---- what must hold

  void violation(const std::string& text) { result_.violations.push_back(text); }

  void check_event(const EventResult& result) {
    const FaultEvent& event = result.event;
    const std::string what = fmt::format("{} of {} ({}) after step {}", name_of(event.fault),
                                         result.target, name_of(event.role), result.step);
    if (!result.recovered) violation(what + ": the run did not recover");
    if (ends_the_task(event)) check_culprit(event, what);
    if (event.fault == Fault::slow && going_.loss) {
      violation(what + ": it was only slow, but was taken for dead");
    }
    check_step(what);
  }

  /// What was saved is never done again. A group that goes on from the disk does not say its step;
  /// a checkpoint of workers that do not go in step may be ahead of the chief.
  void check_step(const std::string& what) {
    const auto& group = going_.group;
    if (strategy_.lockstep && group && group->step >= 0 && group->step < going_.checkpoint) {
      violation(fmt::format("{}: the run went back to step {}, behind the checkpoint of step {}",
                            what, group->step, going_.checkpoint));
    }
    const std::int64_t checkpoint = watch_.checkpoint_step();
    if (checkpoint < going_.checkpoint) {
      violation(fmt::format("{}: the newest checkpoint is of step {}, before it was of step {}",
                            what, checkpoint, going_.checkpoint));
    }
  }

  void check_culprit(const FaultEvent& event, const std::string& what) {
    if (!going_.loss) {
      violation(what + ": history.jsonl does not name it");
    } else if (going_.loss->cause.find(words_of(event.fault)) == std::string::npos) {
      violation(fmt::format("{}: the cause is said to be: {}", what, going_.loss->cause));
    }
  }

  void check_end() {
    result_.exit_code = run_.exit_code();
    result_.run.summary = watch_.summary();
    result_.run.losses = static_cast<int>(watch_.losses().size());
    if (!run_.ended_well()) check_exit_code();
    for (const std::string& problem : run_.problems()) violation(problem);
    for (const SeenLoss& loss : watch_.losses()) check_loss(loss);
  }

  void check_exit_code() {
    std::string text = fmt::format("the run ended with exit code {}", run_.exit_code());
    for (const std::string& failure : failures()) text += "; " + failure;
    violation(text);
  }

  std::vector<std::string> failures() const {
    if (!result_.run.summary.is_object()) return {};
    return result_.run.summary.at("failures").get<std::vector<std::string>>();
  }

  void check_loss(const SeenLoss& loss) {
    if (!explained_.contains(loss.line)) {
      violation("lost, though nothing was done to it: " + loss.cause);
    }
    const std::string pid = fmt::format("pid {}", loss.pid);
    const bool named = std::ranges::any_of(failures(), [&](const std::string& failure) {
      return failure.find(pid) != std::string::npos;
    });
    if (!named) violation("summary.json does not name: " + loss.cause);
  }

  const ChaosOptions& options_;
  RoundResult& result_;
  const TestedStrategy& strategy_;
  const ClusterSize size_;
  const std::int64_t steps_;
  DisturbedRun run_;
  const RunWatch& watch_;
  Going going_;
  std::set<std::size_t> explained_;  // Lines of the history that tell of what was done here.
};

}  // namespace

FinishedRun run_quietly(const ChaosOptions& options, const TestedStrategy& strategy) {
  FinishedRun finished{.run_dir = options.folder / ("quiet-" + strategy.name), .summary = {}};
  DisturbedRun run(train_words(options, strategy, finished.run_dir, {"checkpoint.every_steps=100"}),
                   finished.run_dir, options.hang_seconds);
  while (!run.over()) run.pump();
  finished.summary = run.watch().summary();
  if (run.ended_well() && run.problems().empty()) return finished;
  fail(ErrorCode::invalid,
       "the job does not train with strategy {} even when left alone (exit code {}); see {}.log",
       strategy.name, run.exit_code(), finished.run_dir.string());
}

RoundResult run_round(const ChaosOptions& options, const RoundPlan& plan,
                      const FinishedRun& quiet) {
  const std::string name = fmt::format("round-{:03}-{}", plan.number, plan.strategy.name);
  RoundResult result{.plan = plan};
  result.run.run_dir = options.folder / name;
  Round(options, result, quiet.summary.at("steps").get<std::int64_t>()).play();
  if (result.exit_code == 0) {
    for (std::string& text : differences(plan.strategy, quiet, result.run)) {
      result.violations.push_back(std::move(text));
    }
  }
  if (!result.violations.empty()) result.log_tails = log_tails(result.run.run_dir);
  return result;
}

}  // namespace cohort
