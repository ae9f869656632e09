#include "chaos/round.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/fail.h"
#include "chaos/checks.h"
#include "chaos/faults/disturbance.h"
#include "chaos/movement.h"
#include "chaos/ongoing_event.h"
#include "chaos/watch/disturbed_run.h"
#include "cluster/task_name.h"

namespace cohort::chaos {
namespace {

/// So many that a fault is likely to hit one, and that there is always one to go back to.
constexpr std::int64_t kCheckpointsInRun = 20;

/// Plays one round into a RoundResult, which must outlive it. It is all one thread: pump() waits a
/// few milliseconds and reads the run's files, and everything else is decided by what they say.
class Round {
 public:
  /// Starts the training. `steps` are those of the whole run.
  Round(const ChaosOptions& options, RoundResult& result, std::int64_t steps)
      : options_(options),
        result_(result),
        strategy_(result.plan.strategy),
        size_{.workers = options.size.workers, .servers = strategy_.servers},
        steps_(steps),
        disk_(needs_disk() ? options.slow_disk : "", result.run.run_dir),
        run_(words(), result.run.run_dir, options.hang_seconds, disk_.environment()),
        watch_(run_.watch()) {}

  /// Plays all events, waits for the end of the run and checks it. Called once.
  void play() {
    const auto start = Clock::now();
    for (const FaultEvent& event : result_.plan.events) {
      play(result_.events.emplace_back(
          EventResult{.event = event, .round = result_.plan.number, .strategy = strategy_.name}));
      run_.disturb(nullptr);
      disk_.release();
    }
    while (!run_.over()) run_.pump();
    result_.seconds = seconds_since(start);
    check_end();
  }

 private:
  bool needs_disk() const {
    return std::ranges::count(result_.plan.events, Fault::slow_disk, &FaultEvent::fault) > 0;
  }

  /// The words of the training, whose planted fault is noted in the result on the way.
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
    while (!is_done(result) && !run_.over()) {
      run_.pump();
      if (disk_by_ && disk_by_->passed()) disk_.release();
    }
    if (result.event.fault == Fault::meanwhile) check_second(result);
    result.happened = !going_.victims.empty();
    if (result.happened) check_event(result);
  }

  /// Whether all workers are in the group and all servers run.
  bool is_whole() const {
    const auto ranked = std::ranges::count_if(
        watch_.tasks(), [](const SeenTask& task) { return task.rank.has_value(); });
    const auto servers = std::ranges::count(watch_.tasks(), cluster::kServerRole, &SeenTask::role);
    return ranked == size_.workers && servers == size_.servers;
  }

  /// Sends the signals of a timed event when it is due. On a slow disk that is when somebody waits
  /// for the disk. False where the run was over before it was time.
  bool fire(EventResult& result) {
    const FaultEvent& event = result.event;
    const auto due = static_cast<std::int64_t>(event.at * static_cast<double>(steps_));
    while (!run_.over() && (watch_.step() < due || watch_.step() == 0 || !is_whole())) run_.pump();
    if (event.fault == Fault::slow_disk && !run_.over()) disk_.hold();
    while (event.fault == Fault::slow_disk && !run_.over() && !disk_.keeps_waiting()) run_.pump();
    if (run_.over()) return false;
    begin(result, victims_of(event, size_, watch_.tasks()));
    if (event.fault == Fault::freeze || event.fault == Fault::slow) {
      const bool freeze = event.fault == Fault::freeze;
      run_.disturb(std::make_unique<Disturbance>(
          going_.victims.front().pid, freeze ? Disturbance::Kind::freeze : Disturbance::Kind::slow,
          freeze ? options_.freeze_seconds : options_.slow_seconds));
    } else {
      kill_victims();
    }
    // Whoever was not killed here crashes by itself.
    if (event.fault == Fault::meanwhile) going_.victims.push_back(planted_victim(event, size_));
    result.target = victim_names(going_.victims);
    if (event.fault == Fault::slow_disk) disk_by_ = Deadline::in_seconds(options_.slow_seconds);
    return true;
  }

  /// All are held (by pidfd) before the first is killed, so that nothing comes between.
  void kill_victims() const {
    std::vector<std::unique_ptr<HeldProcess>> held;
    for (const Victim& victim : going_.victims) {
      held.push_back(std::make_unique<HeldProcess>(victim.pid));
    }
    for (const auto& process : held) process->signal(SIGKILL);
  }

  /// Waits until the history tells of the loss that the planted fault must cause. False where the
  /// run is over without it.
  bool await_planted(EventResult& result) {
    const Victim victim = planted_victim(result.event, size_);
    const auto is_it = [&](const SeenLoss& loss) {
      return tells_of(loss, victim) && !explained_.contains(loss.line);
    };
    // What is on the disk when the loss is seen may have been saved since. What was there before a
    // look that did not see it yet was saved before it.
    std::int64_t before_look = -1;
    std::int64_t saved = -1;
    while (!run_.over() && std::ranges::none_of(watch_.losses(), is_it)) {
      saved = std::exchange(before_look, watch_.checkpoint_step());
      run_.pump();
    }
    const auto loss = std::ranges::find_if(watch_.losses(), is_it);
    if (loss == watch_.losses().end()) {
      check_never_fired(victim);
      return false;
    }
    begin(result, {victim});
    going_.line = loss->line;
    going_.checkpoint = saved;
    return true;
  }

  /// Notes how things stand when an event begins.
  void begin(EventResult& result, std::vector<Victim> victims) {
    going_ = {.step = watch_.step(),
              .line = watch_.history_lines(),
              .checkpoint = watch_.checkpoint_step(),
              .victims = std::move(victims)};
    result.target = victim_names(going_.victims);
    result.step = going_.step;
  }

  /// Whether the victim must be lost: not by being slow, and by a freeze only where it outlasts the
  /// silence after which the launcher takes a task for lost.
  bool ends_the_task(const FaultEvent& event) const {
    if (event.fault == Fault::slow) return false;
    return event.fault != Fault::freeze || options_.freeze_seconds > options_.silence_lost_seconds;
  }

  /// Whether a new group must be formed before any later step. Only the loss of a worker that is
  /// not the chief leaves the others of a loose group alone.
  bool needs_group(const FaultEvent& event) const {
    if (!ends_the_task(event)) return false;
    const bool two = event.fault == Fault::at_once || event.fault == Fault::meanwhile;
    return strategy_.traits.loss_stops_all || event.role != TaskRole::worker ||
           (two && event.other != TaskRole::worker);
  }

  /// Whether all that must be seen was seen: who was lost, a new group where nobody goes on without
  /// one, and a later step. Or that nobody could be lost any more.
  bool is_done(EventResult& result) {
    const FaultEvent& event = result.event;
    going_.look(watch_, explained_);
    if (ends_the_task(event)) {
      going_.forget_those_who_ended(watch_);
      if (going_.victims.empty()) return true;
    }
    if (!needs_group(event)) going_.group.reset();
    const bool waits_for_group = needs_group(event) && !going_.group;
    const std::int64_t before = std::max(going_.step, going_.group ? going_.group->step : 0);
    const bool later = !waits_for_group && watch_.step() > before;
    if ((later || run_.ended_well()) && !going_.progress_seconds) {
      going_.progress_seconds = seconds_since(going_.start);
    }
    const bool waits_for_loss = ends_the_task(event) && !going_.all_lost();
    if (!going_.progress_seconds || waits_for_loss) return false;
    result.recovered = true;
    result.recovery_seconds = *going_.progress_seconds;
    return ends_the_task(event) || !run_.is_disturbed();
  }

  // ---- what must hold

  void violation(const std::string& text) { result_.violations.push_back(text); }

  /// A fault that does not happen tests nothing. The run was long enough for it, unless the process
  /// that had it was lost before.
  void check_never_fired(const Victim& victim) {
    const bool was_lost = std::ranges::any_of(
        watch_.losses(), [&](const SeenLoss& loss) { return tells_of(loss, victim); });
    if (run_.ended_well() && !was_lost) {
      violation(fmt::format("the planted fault {} never happened", result_.faults));
    }
  }

  /// Where a group was formed after the first was lost, all survivors came by the second's
  /// failpoint; otherwise the run was over before there was a recovery to disturb.
  void check_second(EventResult& result) {
    const Victim& first = going_.victims.front();
    const Victim second = going_.victims.back();
    if (second.loss || !run_.over()) return;
    if (first.loss && watch_.group_after(first.loss->line)) check_never_fired(second);
    going_.victims.pop_back();
    result.target = victim_names(going_.victims);
    result.recovered = run_.ended_well();
    result.recovery_seconds = going_.progress_seconds.value_or(0);
  }

  /// What must hold after each event that happened.
  void check_event(const EventResult& result) {
    const FaultEvent& event = result.event;
    const std::string what = fmt::format("{} of {} ({}) after step {}", name_of(event.fault),
                                         result.target, name_of(event.role), result.step);
    if (!result.recovered) violation(what + ": the run did not recover");
    if (ends_the_task(event)) {
      for (const Victim& victim : going_.victims) check_culprit(victim, what);
    }
    if (event.fault == Fault::slow && going_.any_lost()) {
      violation(what + ": it was only slow, but was taken for dead");
    }
    check_step(what);
  }

  /// What was saved is never done again. A group that goes on from the disk does not say its step;
  /// a checkpoint of workers that do not go in step may be ahead of the chief.
  void check_step(const std::string& what) {
    const auto& group = going_.group;
    if (strategy_.traits.loss_stops_all && group && group->step >= 0 &&
        group->step < going_.checkpoint) {
      violation(fmt::format("{}: the run went back to step {}, behind the checkpoint of step {}",
                            what, group->step, going_.checkpoint));
    }
    const std::int64_t checkpoint = watch_.checkpoint_step();
    if (checkpoint < going_.checkpoint) {
      violation(fmt::format("{}: the newest checkpoint is of step {}, before it was of step {}",
                            what, checkpoint, going_.checkpoint));
    }
  }

  /// The history must name every victim, with the cause that it really had.
  void check_culprit(const Victim& victim, const std::string& what) {
    if (!victim.loss) {
      violation(fmt::format("{}: history.jsonl does not name {}", what, victim_names({victim})));
    } else if (victim.loss->cause.find(victim.words) == std::string::npos) {
      violation(fmt::format("{}: the cause is said to be: {}", what, victim.loss->cause));
    }
  }

  /// What must hold when the run is over, whatever has happened in it.
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

  /// Every loss was caused here, and is named in summary.json, by its pid.
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
  SlowDisk disk_;
  // Until when the disk stays slow after the kill of such an event.
  std::optional<Deadline> disk_by_;
  // The training. Made after disk_, whose environment it gets.
  DisturbedRun run_;
  const RunWatch& watch_;
  // The event that goes on, or the last one.
  OngoingEvent going_;
  // Lines of the history that tell of what was done here. A loss on any other line is a violation.
  std::set<std::size_t> explained_;
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

RoundResult run_round(const ChaosOptions& options, const RoundPlan& plan, const FinishedRun& quiet,
                      MovementJob* movement) {
  const std::string name = fmt::format("round-{:03}-{}", plan.number, plan.strategy.name);
  RoundResult result{.plan = plan};
  result.run.run_dir = options.folder / name;
  Round(options, result, quiet.summary.at("steps").get<std::int64_t>()).play();
  if (result.exit_code == 0) {
    if (movement != nullptr) {
      result.run.moved_steps = movement->steps_moved(result.run.run_dir / "model.safetensors");
    }
    for (std::string& text : differences(plan.strategy, quiet, result.run)) {
      result.violations.push_back(std::move(text));
    }
  }
  if (!result.violations.empty()) result.log_tails = log_tails(result.run.run_dir);
  return result;
}

}  // namespace cohort::chaos
