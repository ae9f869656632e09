#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "chaos/strategy_table.h"

namespace cohort {

/// What is done to a task. The first four come from outside while it works (exit: it ends with code
/// 1 in a step); the others are crashes in a phase of its life.
enum class Fault { kill, freeze, slow, exit, start, rendezvous, step, checkpoint, shutdown };

/// The chief is the worker of rank 0; `worker` is any other.
enum class TaskRole { worker, server, chief };

const char* name_of(Fault fault);
const char* name_of(TaskRole role);

/// Whether it is done by a signal at a moment of this program's choice; otherwise a failpoint is
/// planted in the task before the run starts.
bool is_timed(Fault fault);

struct FaultEvent {
  Fault fault = Fault::kill;
  TaskRole role = TaskRole::worker;
  double at = 0;      ///< When: as a share of the run's steps.
  int pick = 0;       ///< Which of those with this role, by number modulo theirs.
  std::string point;  ///< Where a planted fault waits.

  bool operator==(const FaultEvent&) const = default;
};

/// A training with one strategy and what happens in it, in that order. At most one fault is
/// planted.
struct RoundPlan {
  int number = 0;  ///< The first is 1.
  TestedStrategy strategy;
  std::vector<FaultEvent> events;
};

/// The faults of a whole session, round by round: a function of the seed, the strategies and the
/// number of tasks, so that a session can be repeated. Strategies take turns; within one, no pair
/// of fault and role comes again before all others that it can have, and those that came least in
/// all come first.
class FaultSchedule {
 public:
  FaultSchedule(std::uint64_t seed, std::vector<TestedStrategy> strategies);

  /// With at least one and at most `most` events.
  RoundPlan next(int most);

 private:
  using Pair = std::pair<Fault, TaskRole>;

  Pair draw(const TestedStrategy& strategy, std::span<const FaultEvent> before);

  Random random_;
  std::vector<TestedStrategy> strategies_;
  int rounds_ = 0;
  std::map<Pair, int> drawn_;
  std::map<std::pair<std::string, Pair>, int> drawn_by_strategy_;
};

/// What `cohort train --faults` takes for the planted fault of these events; empty where there is
/// none. `steps` are those of the run.
std::string planted_faults(const RoundPlan& plan, const ClusterSize& size, std::int64_t steps);

/// The number of the task a planted fault is in.
int planted_task(const FaultEvent& event, const ClusterSize& size);

}  // namespace cohort
