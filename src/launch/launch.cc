#include "launch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/fail.h"
#include "base/log.h"
#include "cluster/task_name.h"
#include "launch/groups.h"
#include "launch/patience.h"
#include "launch/stragglers.h"
#include "launch/tasks.h"

namespace cohort::launch {
namespace {

using namespace std::chrono_literals;

// What a worker takes at most to notice that a peer is gone, and to say so.
constexpr auto kGraceAfterFailure = 3s;
// How soon a change is seen; shorter while all wait for this process.
constexpr auto kTick = 50ms;
constexpr auto kShortTick = 2ms;

/// The loop that launch.h describes. Three things decide when it ends: `waiting_` and the running
/// processes (it goes on while there is one of either), and `end_by_`, which is set once the run
/// shall end, whatever the reason: from then on nobody is replaced, and when the time is up all are
/// ended.
class Launcher {
 public:
  explicit Launcher(const Launch& launch)
      : launch_(launch),
        control_(launch.control),
        cluster_(launch.cluster),
        tasks_({launch.cluster, launch.control, launch.processes, launch.log_of}),
        groups_(launch, tasks_),
        budget_(launch.regroups || is_one_process() ? cluster_.max_restarts : 0),
        everyone_(control_.cards().size()) {
    std::iota(everyone_.begin(), everyone_.end(), 0);
  }

  LaunchResult run() {
    for (const ProcessPlan& plan : launch_.plans) start(plan);
    if (launch_.serve) launch_.serve();
    if (launch_.regroups) groups_.form_first();
    launch_.status.write_tasks(groups_.view(), tasks_.list(groups_.view()));
    while (tasks_.running() > 0 || !waiting_.empty()) {
      const bool changing = launch_.regroups && groups_.is_changing();
      if (const auto request = launch_.requests.wait(changing ? kShortTick : kTick)) {
        handle(*request);
      }
      for (const Tasks::End& end : tasks_.reap()) note_end(end);
      start_waiting();
      if (launch_.regroups) regroup();
      watch();
      if (time_is_up()) tasks_.end_all();
    }
    launch_.progress.finish();
    sort_by_cause(result_.failures);
    result_.restarts = budget_.taken();
    return result_;
  }

 private:
  bool is_one_process() const { return launch_.plans.size() == 1 && !launch_.plans[0].remote; }
  bool stopping() const { return result_.signal != 0; }

  /// Whether those that still run are to be ended now.
  bool time_is_up() {
    if (!end_by_) return false;
    if (stop_at_once_) return true;
    const auto now = Clock::now();
    if (!grace_) return end_by_->passed() && !is_saving(now);
    return grace_->is_over(now, movement_.look(control_, everyone_, now), longest_step()) &&
           !is_saving(now);
  }

  /// What is being saved is not given up, but for a second Ctrl-C.
  bool is_saving(Clock::time_point now) const {
    return std::ranges::any_of(control_.cards(), [&](const auto& card) {
      return card.state.load() == TaskState::saving && card.activity.is_working(now);
    });
  }

  /// The longest that a worker has made; 0: there is none.
  Duration longest_step() const {
    double seconds = 0;
    for (const WorkerCard& card : control_.cards()) {
      seconds = std::max(seconds, card.longest_step.load(std::memory_order_relaxed));
    }
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }

  /// The workers end by themselves when they have saved.
  void end_in_time() {
    const auto timeout = std::chrono::duration<double>(cluster_.timeout_seconds);
    const auto quiet = quiet_before_end(std::chrono::duration_cast<Duration>(timeout));
    end_by_ = Deadline::in(quiet);
    grace_.emplace(Clock::now(), quiet);
  }

  void regroup() {
    groups_.go_on();
    if (groups_.trained()) waiting_.clear();  // Nobody is needed any more.
    if (missing_wanted_) start_missing_workers();
    if (auto failure = groups_.take_hopeless()) {
      result_.failures.push_back(*failure);
      give_up(*failure);
    }
  }

  void start(const ProcessPlan& plan) {
    tasks_.start(plan);
    if (launch_.regroups) {
      for (const int worker : plan.workers) groups_.started(worker);
    }
    hanging_by_.reset();
  }

  /// Starts those whose time has come. One that cannot be made is tried again a second later.
  void start_waiting() {
    const auto now = Clock::now();
    for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
      if (now < waiting->when) {
        ++waiting;
        continue;
      }
      if (launch_.regroups) waiting->plan.generation = groups_.view().generation + 1;
      try {
        start(waiting->plan);
        waiting = waiting_.erase(waiting);
      } catch (const Error& error) {
        log_warn("{}", error.what());  // No process could be made; later perhaps.
        waiting->when = now + 1s;
      }
    }
  }

  // ---- what is asked for

  void handle(const RunRequest& request) {
    if (request.kind == RunRequest::Kind::stop) return stop(request.signal);
    try {
      change_workers(request.workers);
    } catch (const std::exception& error) {
      launch_.requests.answer(fmt::format("failed: {}", error.what()));
    }
  }

  void stop(int signal) {
    if (stopping()) {
      stop_at_once_ = true;
      end_by_ = Deadline::in(0s);
      return;
    }
    result_.signal = signal;
    waiting_.clear();
    groups_.end(false);  // The chief saves before it pauses.
    control_.request_stop();
    choose_last_step();
    end_in_time();
    launch_.progress.say("stopping after this step; press Ctrl-C again to stop at once");
  }

  /// See ControlBlock::may_head_for.
  void choose_last_step() {
    if (!launch_.regroups && !is_one_process()) {
      return control_.set_last_step(ControlBlock::kNoCommonStep);
    }
    const std::int64_t furthest =
        control_.furthest_step(launch_.regroups ? groups_.view().workers : everyone_);
    control_.set_last_step(good_last_step(furthest, launch_.steps_alone, longest_step()));
  }

  void change_workers(int wanted) {
    const auto most = static_cast<int>(control_.cards().size());
    const auto least = static_cast<int>(std::max<std::int64_t>(cluster_.min_workers, 1));
    if (!launch_.regroups) {
      launch_.requests.answer("refused: the number of workers of this run was set by others");
    } else if (wanted < least || wanted > most) {
      launch_.requests.answer(
          fmt::format("refused: this run can have {} to {} workers", least, most));
    } else {
      const int before = groups_.members().wanted();
      groups_.want(wanted);
      start_missing_workers();
      const std::string text =
          fmt::format("workers wanted from now on: {} (before: {})", wanted, before);
      launch_.requests.answer(text);
      launch_.status.happened("scale", {{"workers", wanted}, {"before", before}});
      launch_.progress.say(text);
    }
  }

  /// Here they only wait to be started: where no process can be made, start_waiting() tries again.
  void start_missing_workers() {
    if (end_by_ || groups_.trained()) return;
    const auto missing = [&] {
      return groups_.members().wanted() - groups_.members().present() -
             static_cast<int>(waiting_.size());
    };
    while (missing() < 0 && !waiting_.empty()) waiting_.pop_back();
    const auto most = static_cast<int>(control_.cards().size());
    for (int worker = 0; missing() > 0 && worker < most; ++worker) {
      if (tasks_.runs_worker(worker) || waits(worker)) continue;
      waiting_.push_back({groups_.plan_of(worker), Clock::now()});
    }
    // Numbers of workers that are just leaving become free in a moment.
    missing_wanted_ = missing() > 0;
  }

  bool waits(int worker) const {
    return std::ranges::any_of(waiting_, [&](const WaitingPlan& waiting) {
      return std::ranges::count(waiting.plan.workers, worker) > 0;
    });
  }

  // ---- losses

  void note_end(const Tasks::End& end) {
    const bool is_worker = !end.plan.workers.empty();
    if (launch_.regroups && is_worker && end.failures.empty()) {
      groups_.finished(end.plan.workers.front());
    }
    if (!end.failures.empty()) note_loss(end);
    if (end.done) {
      const auto note = [&](const char* role, int number) {
        launch_.status.happened("ended", {{"role", role}, {"number", number}, {"pid", end.pid}});
      };
      for (const int worker : end.plan.workers) note(cluster::kWorkerRole, worker);
      for (const int server : end.plan.servers) note(cluster::kServerRole, server);
    }
    launch_.status.write_tasks(groups_.view(), tasks_.list(groups_.view()));
  }

  /// A process ended with tasks that were not done: that is survived, or ends the run.
  void note_loss(const Tasks::End& end) {
    std::vector<TaskFailure> failures = end.failures;
    sort_by_cause(failures);
    const TaskFailure& cause = failures.front();
    launch_.status.happened("lost", {{"role", cause.role},
                                     {"number", cause.number},
                                     {"pid", cause.pid},
                                     {"step", cause.step},
                                     {"cause", describe(cause)}});
    const bool not_needed = launch_.regroups && !end.plan.workers.empty() &&
                            control_.is_sent_away(end.plan.workers.front());
    if (launch_.regroups) groups_.lost(end.plan);
    if (groups_.trained() || not_needed || (stopping() && launch_.regroups)) {
      // What was to be saved was saved, or another one will do it.
      result_.recovered.push_back(cause);
    } else if (end_by_ || is_hopeless(cause) || !replace(end.plan, cause)) {
      result_.failures.insert(result_.failures.end(), failures.begin(), failures.end());
      give_up(cause);
    }
  }

  /// Plans another process for the task, or goes on without it. False where neither can be.
  bool replace(const ProcessPlan& plan, const TaskFailure& cause) {
    const bool is_server = plan.workers.empty();
    const auto wait = budget_.take(task_name(plan), Clock::now());
    const bool enough_left = launch_.regroups && !is_server && cluster_.min_workers > 0 &&
                             groups_.members().present() >= cluster_.min_workers;
    if (!wait && !enough_left) return false;
    result_.recovered.push_back(cause);
    std::string what = "the others go on without it";
    if (wait) {
      what = *wait == Duration::zero() ? "it is started again"
                                       : fmt::format("it is started again in {:.0f} s",
                                                     std::chrono::duration<double>(*wait).count());
    }
    launch_.progress.say(fmt::format("{}; {}", describe(cause), what));
    if (!wait || is_server) return true;  // Servers are started with every group.
    ProcessPlan again = plan;
    ++again.generation;
    again.failpoints.clear();  // Planted faults are of the first process only.
    waiting_.push_back({std::move(again), Clock::now() + *wait});
    return true;
  }

  /// The run cannot go on. What the rest has learned is saved if there is anything.
  void give_up(const TaskFailure& cause) {
    if (end_by_) return;
    waiting_.clear();
    const bool can_save = launch_.regroups && !is_hopeless(cause) && groups_.members().has_state();
    end_by_ = Deadline::in(kGraceAfterFailure);
    if (can_save) {
      end_in_time();
      groups_.end(true);
      launch_.progress.say(fmt::format(
          "{}; no restarts are left, so the others save what they have", describe(cause)));
    }
  }

  // ---- watching

  void watch() {
    const auto now = Clock::now();
    for (const std::string& words : tasks_.end_silent(now)) launch_.progress.say(words);
    if (const auto words = stalls_.look(control_, groups_.view(), now)) {
      launch_.progress.say(*words);
    }
    launch_.progress.tick(live_workers());
    for (const std::string& words : slow_.look(control_)) launch_.progress.say(words);
    if (!launch_.regroups) note_states();
    if (groups_.trained() && !end_by_) {
      end_by_ = Deadline::in_seconds(cluster_.timeout_seconds);
    }
  }

  std::size_t live_workers() const {
    if (launch_.regroups) return static_cast<std::size_t>(groups_.members().training());
    return static_cast<std::size_t>(std::ranges::count_if(control_.cards(), [](const auto& card) {
      const TaskState state = card.state.load();
      return state != TaskState::absent && state != TaskState::failed;
    }));
  }

  /// Threads that cannot go on may not know it yet. Their process may be started again.
  void end_hanging() {
    if (!is_one_process()) {
      end_by_ = Deadline::in(kGraceAfterFailure);
    } else if (!hanging_by_) {
      hanging_by_ = Deadline::in(kGraceAfterFailure);
    } else if (hanging_by_->passed()) {
      tasks_.end_worker(launch_.plans[0].workers.front(), "hung after a failure and was ended");
    }
  }

  /// A worker that has failed or finished may be a thread, or its process may hang in its last
  /// breath: the others' time is limited all the same.
  void note_states() {
    for (const WorkerCard& card : control_.cards()) {
      const TaskState state = card.state.load();
      if (state == TaskState::failed && !end_by_) end_hanging();
      if (state == TaskState::done && !end_by_) {
        end_by_ = Deadline::in_seconds(cluster_.timeout_seconds);
      }
    }
  }

  struct WaitingPlan {
    ProcessPlan plan;
    Clock::time_point when;
  };

  const Launch& launch_;
  ControlBlock& control_;
  const ClusterOptions& cluster_;
  Tasks tasks_;
  Groups groups_;
  RestartBudget budget_;
  StallReport stalls_;
  SlowReport slow_;
  std::vector<WaitingPlan> waiting_;  // To be started when it is time.
  LaunchResult result_;
  bool stop_at_once_ = false;    // It was asked for twice.
  bool missing_wanted_ = false;  // There was no number yet for all workers that are wanted.
  std::vector<int> everyone_;    // All workers there may be.
  Movement movement_;
  std::optional<Deadline> end_by_;      // Set once the run shall end.
  std::optional<StopGrace> grace_;      // Where there is something to save before that.
  std::optional<Deadline> hanging_by_;  // Of threads of which one has failed.
};

}  // namespace

LaunchResult launch_workers(const Launch& launch) {
  return Launcher(launch).run();
}

}  // namespace cohort::launch
