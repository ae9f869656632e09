#include "chaos/faults/fault_schedule.h"

#include <algorithm>
#include <tuple>

#include "chaos/faults/planted_fault.h"

namespace cohort {
namespace {

using Pair = std::pair<Fault, TaskRole>;

/// A fault as the schedule sees it. `place`: those that a task meets first in its life come first
/// in a round; what waits for its end comes last.
struct FaultRow {
  Fault fault;
  const char* name;
  bool timed;
  bool planted;
  bool of_servers;  ///< Whether it can be done to a server,
  bool of_workers;  ///< and to a worker that is not the chief.
  int place;
};

// Only the chief writes checkpoints; servers are told who they work for and when to end.
constexpr FaultRow kRows[] = {
    {Fault::kill, "kill", true, false, true, true, 2},
    {Fault::freeze, "freeze", true, false, true, true, 2},
    {Fault::slow, "slow", true, false, true, true, 2},
    {Fault::at_once, "kill with another at once", true, false, true, true, 2},
    {Fault::slow_disk, "kill while the disk is slow", true, false, true, true, 2},
    {Fault::meanwhile, "crash while another is replaced", true, true, false, true, 0},
    {Fault::exit, "exit", false, true, true, true, 1},
    {Fault::start, "crash at start", false, true, true, true, 0},
    {Fault::rendezvous, "crash in rendezvous", false, true, false, true, 0},
    {Fault::step, "crash in step", false, true, true, true, 1},
    {Fault::between_pushes, "crash between pushes", false, true, false, true, 1},
    {Fault::checkpoint, "crash in checkpoint", false, true, false, false, 1},
    {Fault::shutdown, "crash at shutdown", false, true, false, true, 3},
};
constexpr TaskRole kRoles[] = {TaskRole::worker, TaskRole::server, TaskRole::chief};

const FaultRow& row_of(Fault fault) {
  return *std::ranges::find(kRows, fault, &FaultRow::fault);
}

/// Events come in this part of a run, so that there is something before and after each.
constexpr double kFirst = 0.1;
constexpr double kLast = 0.8;

bool fits(const Pair& pair, std::span<const FaultEvent> before) {
  for (const FaultEvent& event : before) {
    if (is_planted(pair.first) && is_planted(event.fault)) return false;
    const bool waits = pair.first == Fault::shutdown || event.fault == Fault::shutdown;
    if (!waits) continue;
    // A fault that waits for the end needs its task to live until then.
    const bool hits_anybody = pair.first == Fault::at_once || event.fault == Fault::at_once;
    if (pair.second == event.role || hits_anybody) return false;
  }
  return true;
}

}  // namespace

const char* name_of(Fault fault) {
  return row_of(fault).name;
}

const char* name_of(TaskRole role) {
  return role == TaskRole::worker ? "worker" : role == TaskRole::server ? "server" : "chief";
}

bool is_timed(Fault fault) {
  return row_of(fault).timed;
}

bool is_planted(Fault fault) {
  return row_of(fault).planted;
}

FaultSchedule::FaultSchedule(std::uint64_t seed, std::vector<TestedStrategy> strategies,
                             bool slow_disk)
    : random_(seed), strategies_(std::move(strategies)), slow_disk_(slow_disk) {}

bool FaultSchedule::can_have(const Pair& pair, const TestedStrategy& strategy) const {
  const auto& [fault, role] = pair;
  const FaultRow& row = row_of(fault);
  if (role == TaskRole::server && !(row.of_servers && strategy.servers > 0)) return false;
  if (role == TaskRole::worker && !row.of_workers) return false;
  if (fault == Fault::between_pushes) return strategy.servers > 1;
  return fault != Fault::slow_disk || slow_disk_;
}

FaultSchedule::Pair FaultSchedule::draw(const TestedStrategy& strategy,
                                        std::span<const FaultEvent> before) {
  using Rank = std::tuple<int, int, std::uint64_t>;
  Pair best;
  Rank best_rank;
  bool found = false;
  for (const FaultRow& row : kRows) {
    for (const TaskRole role : kRoles) {
      const Pair pair{row.fault, role};
      if (!can_have(pair, strategy) || !fits(pair, before)) continue;
      const Rank rank{drawn_by_strategy_[{strategy.name, pair}], drawn_[pair], random_.next()};
      if (found && best_rank < rank) continue;
      found = true;
      best = pair;
      best_rank = rank;
    }
  }
  ++drawn_[best];
  ++drawn_by_strategy_[{strategy.name, best}];
  return best;
}

FaultEvent FaultSchedule::event_of(const Pair& pair, const TestedStrategy& strategy) {
  const auto& [fault, role] = pair;
  FaultEvent event{.fault = fault,
                   .role = role,
                   .pick = static_cast<int>(random_.below(1000)),
                   .point = draw_point(fault, role, random_)};
  if (fault != Fault::at_once && fault != Fault::meanwhile) return event;
  // There is only one chief.
  std::vector<TaskRole> others = {TaskRole::worker};
  if (strategy.servers > 0) others.push_back(TaskRole::server);
  if (role != TaskRole::chief) others.push_back(TaskRole::chief);
  event.other = others[random_.below(others.size())];
  return event;
}

RoundPlan FaultSchedule::next(int most) {
  RoundPlan plan{.number = rounds_ + 1,
                 .strategy = strategies_[static_cast<std::size_t>(rounds_) % strategies_.size()],
                 .events = {}};
  ++rounds_;
  for (int i = 0; i < std::max(most, 1); ++i) {
    plan.events.push_back(event_of(draw(plan.strategy, plan.events), plan.strategy));
  }
  std::ranges::stable_sort(plan.events, {},
                           [](const FaultEvent& event) { return row_of(event.fault).place; });
  const double part = (kLast - kFirst) / static_cast<double>(plan.events.size());
  for (std::size_t i = 0; i < plan.events.size(); ++i) {
    plan.events[i].at = kFirst + part * (static_cast<double>(i) + random_.uniform(0.1, 0.9));
  }
  return plan;
}

}  // namespace cohort
