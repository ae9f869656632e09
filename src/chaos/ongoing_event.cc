#include "chaos/ongoing_event.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/task_name.h"

namespace cohort::chaos {
namespace {

bool is_lost(const Victim& victim) {
  return victim.loss.has_value();
}

bool is_same(const SeenTask& task, const Victim& victim) {
  return task.role == victim.role && task.number == victim.number;
}

/// What the cause of a loss says when the fault was this one.
const char* words_of(Fault fault) {
  if (fault == Fault::freeze) return "no sign of life";
  return fault == Fault::exit ? "code 1" : "SIGKILL";
}

/// One of those with this role now, but not `but`; where there is no other, anybody else. They are
/// ordered by rank and number first, so that the event's `pick` means the same in every repetition.
Victim choose_victim(TaskRole role, const FaultEvent& event, const std::vector<SeenTask>& tasks,
                     const std::optional<Victim>& but = {}) {
  std::vector<SeenTask> candidates;
  std::vector<SeenTask> others;
  for (const SeenTask& task : tasks) {
    if (but && is_same(task, *but)) continue;
    const bool fits = role == TaskRole::server  ? task.role == cluster::kServerRole
                      : role == TaskRole::chief ? task.rank == 0
                                                : task.rank.value_or(0) > 0;
    (fits ? candidates : others).push_back(task);
  }
  if (candidates.empty()) candidates = std::move(others);
  std::ranges::sort(candidates, {}, [](const SeenTask& task) {
    return std::pair(task.rank.value_or(0), task.number);
  });
  const SeenTask& task = candidates[static_cast<std::size_t>(event.pick) % candidates.size()];
  return {
      .role = task.role, .number = task.number, .pid = task.pid, .words = words_of(event.fault)};
}

}  // namespace

std::string victim_names(const std::vector<Victim>& victims) {
  std::string names;
  for (const Victim& victim : victims) {
    if (!names.empty()) names += " and ";
    names += cluster::task_name(victim.role, victim.number);
  }
  return names;
}

bool tells_of(const SeenLoss& loss, const Victim& victim) {
  return loss.role == victim.role && loss.number == victim.number;
}

Victim planted_victim(const FaultEvent& event, const ClusterSize& size) {
  return {.role = role_in_files(event.role),
          .number = planted_task(event, size),
          .words = words_of(event.fault)};
}

// Chosen when the event begins, among those who run then: which process has a role, or is chief,
// may have changed since the schedule was drawn, and the same `pick` must mean somebody in every
// repetition.
std::vector<Victim> victims_of(const FaultEvent& event, const ClusterSize& size,
                               const std::vector<SeenTask>& tasks) {
  if (event.fault == Fault::meanwhile) {
    return {choose_victim(event.other, event, tasks, planted_victim(event, size))};
  }
  std::vector<Victim> victims = {choose_victim(event.role, event, tasks)};
  if (event.fault == Fault::at_once) {
    victims.push_back(choose_victim(event.other, event, tasks, victims.front()));
  }
  return victims;
}

void OngoingEvent::look(const RunWatch& watch, std::set<std::size_t>& explained) {
  for (Victim& victim : victims) {
    for (const SeenLoss& loss : watch.losses()) {
      if (victim.loss) break;
      const bool is_it = loss.line >= line && tells_of(loss, victim) &&
                         (victim.pid == 0 || loss.pid == victim.pid);
      if (is_it && explained.insert(loss.line).second) victim.loss = loss;
    }
  }
  if (!all_lost()) return;
  std::size_t last = 0;
  for (const Victim& victim : victims) last = std::max(last, victim.loss->line);
  group = watch.group_after(last);
}

bool OngoingEvent::all_lost() const {
  return std::ranges::all_of(victims, is_lost);
}

bool OngoingEvent::any_lost() const {
  return std::ranges::any_of(victims, is_lost);
}

void OngoingEvent::forget_those_who_ended(const RunWatch& watch) {
  std::erase_if(victims, [&](const Victim& victim) {
    return !is_lost(victim) && std::ranges::any_of(watch.ends(), [&](const SeenEnd& end) {
      return end.role == victim.role && end.number == victim.number && end.pid == victim.pid;
    });
  });
}

}  // namespace cohort::chaos
