#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "chaos/chaos_options.h"

namespace cohort::chaos {

/// Who suffers what, and when: the faults there are, and the schedule that draws them from a seed.
///
/// There are two ways to do a fault. A *timed* one is a signal that chaos sends when the run has
/// made a share of its steps. A *planted* one waits in the task itself: `cohort train --faults`
/// sets a failpoint (base/failpoint.h), and the task kills itself, or exits, at a given passing of
/// it. The first hits anywhere, the second exactly where it hurts: between two writes of a
/// checkpoint, or between the pushes to two servers.

/// What is done to a task. The first three come from outside while it works. `at_once`: it and
/// another one are killed in the same moment. `slow_disk`: it is killed while a checkpoint is being
/// written to a disk that takes its time. `meanwhile`: another one is killed, and it crashes in a
/// phase of the recovery from that. `exit` ends with code 1 in a step; the rest are crashes in a
/// phase of its life (between_pushes: when some servers have got its push and others not).
enum class Fault {
  kill,
  freeze,
  slow,
  at_once,
  slow_disk,
  meanwhile,
  exit,
  start,
  rendezvous,
  step,
  between_pushes,
  checkpoint,
  shutdown
};

/// The chief is the worker of rank 0; `worker` is any other.
enum class TaskRole { worker, server, chief };

/// For people and reports.
const char* name_of(Fault fault);
const char* name_of(TaskRole role);

/// As files of a run and `--faults` say it (cluster/task_name.h), where a chief is a worker.
const char* role_in_files(TaskRole role);

/// Whether a signal is sent at a moment of this program's choice.
bool is_timed(Fault fault);
/// Whether a failpoint is planted in the task before the run starts. `meanwhile` is both.
bool is_planted(Fault fault);

/// One thing that is done to a run: what, to whom, when.
struct FaultEvent {
  Fault fault = Fault::kill;
  TaskRole role = TaskRole::worker;
  double at = 0;           ///< When: as a share of the run's steps.
  int pick = 0;            ///< Which of those with this role, by number modulo theirs.
  std::string point = {};  ///< Where a planted fault waits.
  /// Of at_once and meanwhile: whom the other signal is for.
  TaskRole other = TaskRole::worker;

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
  /// With `slow_disk` there is a way to have one.
  FaultSchedule(std::uint64_t seed, std::vector<TestedStrategy> strategies, bool slow_disk);

  /// With at least one and at most `most` events, spread over the middle of the run.
  RoundPlan next(int most);

 private:
  using Pair = std::pair<Fault, TaskRole>;

  bool can_have(const Pair& pair, const TestedStrategy& strategy) const;
  Pair draw(const TestedStrategy& strategy, std::span<const FaultEvent> before);
  FaultEvent event_of(const Pair& pair, const TestedStrategy& strategy);

  Random random_;
  std::vector<TestedStrategy> strategies_;
  bool slow_disk_;
  int rounds_ = 0;
  // How often a pair was drawn, in all and for each strategy by its name.
  std::map<Pair, int> drawn_;
  std::map<std::pair<std::string, Pair>, int> drawn_by_strategy_;
};

/// What `cohort train --faults` takes for the planted fault of these events, such as
/// "worker-2:worker.step=kill@400"; empty where there is none. `steps` are those of the run.
std::string planted_faults(const RoundPlan& plan, const ClusterSize& size, std::int64_t steps);

/// The number of the task a planted fault is in.
int planted_task(const FaultEvent& event, const ClusterSize& size);

}  // namespace cohort::chaos
