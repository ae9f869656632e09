#include "launch/groups.h"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/fail.h"
#include "base/log.h"

namespace cohort::launch {

Groups::Groups(const Launch& launch, Tasks& tasks)
    : launch_(launch),
      control_(launch.control),
      cluster_(launch.cluster),
      tasks_(tasks),
      members_({.workers = static_cast<int>(cluster_.workers),
                .min_workers = static_cast<int>(cluster_.min_workers),
                .loss_stops_all = launch.traits.loss_stops_all}) {}

void Groups::started(int worker) {
  members_.await(worker);
  come_by_.insert_or_assign(worker, Deadline::in_seconds(cluster_.timeout_seconds));
}

void Groups::finished(int worker) {
  members_.finish(worker);
  if (control_.card(worker).finished.load()) trained_ = true;
}

// A loss of a worker that was in no group, or of a server that had ended its service, changes
// nobody's group. Otherwise those who wait for the lost one in the store, because the group was
// just forming, are told at once that it is broken; those who wait at a barrier find out by
// themselves.
void Groups::lost(const ProcessPlan& plan) {
  if (!lost_at_) lost_at_ = Clock::now();
  lost_in_view_ = true;
  // A server of the group that is over: the next one is decided and has servers of its own.
  if (plan.workers.empty() && next_ && servers_started_ == 0) return;
  const auto in_view = [&](int worker) { return view().rank_of(worker).has_value(); };
  if (!plan.servers.empty() || std::ranges::any_of(plan.workers, in_view)) {
    control_.note_loss(view().generation);
  }
  for (const int worker : plan.workers) {
    members_.lose(worker);
    control_.card(worker).activity.clear();
    control_.card(worker).held_step.store(kHoldsNothing);
  }
  if (!plan.servers.empty()) members_.need_new_view();
  // Others may just be waiting for it to appear.
  const bool forming = std::ranges::any_of(view().workers, [&](int worker) {
    const TaskState state = control_.card(worker).state.load();
    return state == TaskState::starting || state == TaskState::paused;
  });
  if (forming || members_.wants_pause()) control_.break_group(view().generation);
}

void Groups::form_first() {
  // Nothing is gained by waiting until each has said that it is there.
  for (int worker = 0; worker < cluster_.workers; ++worker) members_.ready(worker, -1);
  publish(*members_.next());
}

void Groups::end(bool save) {
  ending_ = true;
  if (save) members_.close();
}

bool Groups::is_changing() const {
  return next_ || members_.wants_pause() || members_.training() == 0;
}

ProcessPlan Groups::plan_of(int worker) const {
  const auto workers = static_cast<int>(cluster_.workers);
  return {.workers = {worker},
          .world = workers,
          .generation = view().generation + 1,
          .place = {worker % workers, workers}};
}

// In every round of the launcher's loop, and the whole way from one group to the next; each part
// does nothing where it is not its turn:
//
//   a reason (a loss, a newcomer, fewer wanted)  ──▶  ask_for_pause: the group leaves its steps
//   everybody has paused, or was ended for it    ──▶  members_.next(): who goes on, if enough are
//                                                     there
//   where there are servers                      ──▶  the old ones end, their memories are
//                                                     reconciled, new ones start
//   all is there                                 ──▶  publish: those who wait read who they are
void Groups::go_on() {
  note_ready_workers();
  end_absent();
  if (members_.wants_pause() && !trained_) ask_for_pause();
  if (members_.training() == 0 && !next_ && !ended_) {
    if (must_end()) {
      tell_the_end();
    } else if ((next_ = members_.next()) && has_servers()) {
      control_.end_servers(next_->generation - 1);
    }
  }
  if (next_ && start_servers(*next_)) publish(*std::exchange(next_, std::nullopt));
  // Servers end when their workers have left, which lost ones cannot. Once the run is to end nobody
  // comes in their place.
  if (ended_ || trained_ || ending_) {
    if (members_.present() == 0) control_.end_servers(view().generation);
  }
}

void Groups::note_ready_workers() {
  const std::int64_t next_generation = view().generation + 1;
  for (int worker = 0; worker < static_cast<int>(control_.cards().size()); ++worker) {
    const WorkerCard& card = control_.card(worker);
    if (!members_.has(worker) || card.awaited_generation.load() != next_generation) continue;
    come_by_.erase(worker);
    if (members_.is_training(worker)) note_broken_by_itself(worker);
    members_.ready(worker, card.ready_step.load());
  }
}

/// A worker left its group although nobody was lost and no pause was asked for. That may be an
/// accident (a step that took longer than the timeout), or will happen to every group like it.
void Groups::note_broken_by_itself(int worker) {
  if (control_.pause_requested(view().generation)) {
    if (!lost_in_view_) good_world_ = view().world();
    return;
  }
  control_.break_group(view().generation);
  if (lost_in_view_ || ending_) return;
  const WorkerCard& card = control_.card(worker);
  const std::int64_t step = card.ready_step.load();
  breaks_ = step > broken_at_step_ ? 1 : breaks_ + 1;
  broken_at_step_ = std::max(step, broken_at_step_);
  lost_in_view_ = true;  // The others leave for the same reason.
  launch_.progress.say(fmt::format("group {} broke after step {}: worker {}: {}", view().generation,
                                   step, worker, card.error.data()));
  if (good_world_ > 0 && view().world() > good_world_) {
    members_.want(good_world_);
    launch_.progress.say(fmt::format("going on with {} workers as before", good_world_));
  } else if (breaks_ > std::max<std::int64_t>(cluster_.max_restarts, 1)) {
    hopeless_ = TaskFailure{.number = worker,
                            .pid = card.result.task.pid,
                            .step = step,
                            .code = ErrorCode::timeout,
                            .message = card.error.data()};
  }
}

std::optional<TaskFailure> Groups::take_hopeless() {
  return std::exchange(hopeless_, std::nullopt);
}

/// New processes that do not say in time that they wait for a group.
void Groups::end_absent() {
  for (const auto& [worker, deadline] : come_by_) {
    if (!deadline.passed() || !members_.has(worker) || members_.is_training(worker)) continue;
    tasks_.end_worker(
        worker, fmt::format("did not come within {} s and was ended", cluster_.timeout_seconds));
  }
}

void Groups::ask_for_pause() {
  const std::int64_t generation = view().generation;
  if (!control_.pause_requested(generation)) {
    control_.request_pause(generation);
    pause_by_ = pause_deadline();
  }
  // A worker that is asked to pause may have much to do before.
  const bool moves = movement_.look(control_, view().workers, Clock::now());
  if (moves) pause_by_ = pause_deadline();
  if (!pause_by_.passed()) return;
  std::vector<int> not_paused = view().workers;
  std::erase_if(not_paused, [&](int worker) { return !members_.is_training(worker); });
  for (const int worker : in_the_way(control_, not_paused)) {
    tasks_.end_worker(worker, fmt::format("did not pause within {} s and was ended",
                                          1.5 * cluster_.timeout_seconds));
  }
  // Those who only waited for them pause now.
  pause_by_ = pause_deadline();
}

Deadline Groups::pause_deadline() const {
  const auto timeout = std::chrono::duration<double>(cluster_.timeout_seconds);
  return Deadline::in(pause_patience(std::chrono::duration_cast<Duration>(timeout)));
}

/// All that are left have paused: whether nothing shall follow.
bool Groups::must_end() {
  if (trained_) return true;
  if (!ending_ || members_.present() == 0) return false;
  if (control_.is_saved() || !members_.has_state()) return true;
  members_.close();  // Nobody has saved yet: a group whose only task is to do so.
  return false;
}

/// A view without workers: who waits for a group ends when it reads it.
void Groups::tell_the_end() {
  ended_ = true;
  control_.publish({.generation = view().generation + 1});
}

/// Whether all of them are there. Where no process can be made, later perhaps.
bool Groups::start_servers(const cluster::View& view) {
  if (!has_servers()) return true;
  if (Clock::now() < start_servers_at_) return false;
  if (servers_started_ == 0) {
    if (tasks_.running_servers() > 0) return false;  // Of the group before.
    if (launch_.reconcile_servers) launch_.reconcile_servers();
  }
  try {
    for (; servers_started_ < static_cast<int>(control_.servers().size()); ++servers_started_) {
      tasks_.start({.servers = {servers_started_},
                    .world = view.world(),
                    .served = view.workers,
                    .generation = view.generation});
    }
  } catch (const Error& error) {
    log_warn("{}", error.what());
    start_servers_at_ = Clock::now() + std::chrono::seconds(1);
    return false;
  }
  servers_started_ = 0;
  return true;
}

// Who is sent away must find that when it reads the view, so it is said first.
void Groups::publish(const cluster::View& view) {
  lost_in_view_ = false;
  movement_ = {};
  for (int worker = 0; worker < static_cast<int>(control_.cards().size()); ++worker) {
    if (!members_.has(worker)) control_.send_away(worker);
  }
  const int chief = view.workers.front();
  const std::int64_t step = control_.card(chief).ready_step.load();
  control_.set_chief(chief);
  control_.publish(view);
  launch_.status.happened("group",
                          {{"group", view.generation},
                           {"workers", view.workers},
                           {"step", step},
                           {"seconds_since_loss", lost_at_ ? seconds_since(*lost_at_) : 0}});
  lost_at_.reset();
  launch_.status.write_tasks(view, tasks_.list(view));
  if (view.generation == 1 || view.closing) return;
  launch_.progress.say(fmt::format(
      "group {}: {}{}, worker {} is chief", view.generation,
      view.world() == 1 ? "1 worker goes on" : fmt::format("{} workers go on", view.world()),
      step >= 0 ? fmt::format(" after step {}", step) : " from the newest checkpoint or the start",
      chief));
}

}  // namespace cohort::launch
