#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "chaos/faults/fault_schedule.h"
#include "chaos/watch/run_watch.h"

namespace cohort::chaos {

/// An event while it goes on: whom it is done to, and what the run's own files have told of it so
/// far. All of it is a function of what RunWatch has read; nothing here touches a process.

/// One of those an event is done to.
struct Victim {
  std::string role;  ///< Of the task, as files of the run say it; see cluster/task_name.h.
  int number = 0;
  pid_t pid = 0;           ///< 0: not known, as that of a task that crashes by itself.
  std::string words = {};  ///< That the cause of its loss must have.
  std::optional<SeenLoss> loss = {};
};

/// "worker 1 and server 0".
std::string victim_names(const std::vector<Victim>& victims);

/// Whether a line of the history tells of a task with the victim's role and number. Such a task may
/// have had several processes, one after the other, so it need not be the victim's own loss.
bool tells_of(const SeenLoss& loss, const Victim& victim);

/// The task that has the failpoint of a planted fault.
Victim planted_victim(const FaultEvent& event, const ClusterSize& size);

/// Those whom a signal of a timed fault is sent to, chosen among the tasks that run now: for most
/// faults one of the event's role, for `at_once` a second one, for `meanwhile` only the other one
/// (the first crashes by itself). `tasks` has every worker ranked and all servers, so there is
/// always one.
std::vector<Victim> victims_of(const FaultEvent& event, const ClusterSize& size,
                               const std::vector<SeenTask>& tasks);

/// What is known of an event that goes on: who was lost by it, the group that came after, and when
/// the run went on.
struct OngoingEvent {
  Clock::time_point start = Clock::now();
  std::int64_t step = 0;        ///< The last one seen before.
  std::size_t line = 0;         ///< The lines of the history before it.
  std::int64_t checkpoint = 0;  ///< The newest before; -1: there was none.
  std::vector<Victim> victims = {};
  std::optional<SeenGroup> group = {};
  std::optional<double> progress_seconds = {};  ///< From the start to the first later step.

  /// Finds the losses of the victims that have none yet, and the first group after all of them.
  /// Lines of the history that tell of one are added to `explained`; those that are in it tell of
  /// somebody else's.
  void look(const RunWatch& watch, std::set<std::size_t>& explained);

  bool all_lost() const;
  bool any_lost() const;
  /// Drops victims that the run says had done their work: the signal came too late for them.
  void forget_those_who_ended(const RunWatch& watch);
};

}  // namespace cohort::chaos
