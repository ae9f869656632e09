#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "chaos/watch/run_watch.h"

namespace cohort {

/// One of those an event is done to.
struct Victim {
  std::string role;  ///< Of the task, as files of the run say it.
  int number = 0;
  pid_t pid = 0;           ///< 0: not known; of a planted fault.
  std::string words = {};  ///< That the cause of its loss must have.
  std::optional<SeenLoss> loss = {};
};

/// "worker 1 and server 0".
std::string names_of(const std::vector<Victim>& victims);

/// What is known of an event that goes on: who was lost by it, the group that came after, and when
/// the run went on.
struct OngoingEvent {
  Clock::time_point start = Clock::now();
  std::int64_t step = 0;        ///< The last one seen before.
  std::size_t line = 0;         ///< The lines of the history before it.
  std::int64_t checkpoint = 0;  ///< The newest before.
  std::vector<Victim> victims = {};
  std::optional<SeenGroup> group = {};
  std::optional<double> progress_seconds = {};

  /// Finds the losses of the victims that have none yet, and the first group after all of them.
  /// Lines of the history that tell of one are added to `explained`; those that are in it tell of
  /// somebody else's.
  void look(const RunWatch& watch, std::set<std::size_t>& explained);

  bool all_lost() const;
  bool any_lost() const;
  /// Victims that the run says had done their work: the signal came too late for them.
  void forget_those_who_ended(const RunWatch& watch);
};

}  // namespace cohort
