#include "chaos/fault_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace cohort {
namespace {

using Pair = std::pair<Fault, TaskRole>;

constexpr Fault kFaults[] = {Fault::kill, Fault::freeze,     Fault::slow,
                             Fault::exit, Fault::start,      Fault::rendezvous,
                             Fault::step, Fault::checkpoint, Fault::shutdown};
constexpr TaskRole kRoles[] = {TaskRole::worker, TaskRole::server, TaskRole::chief};

constexpr std::array kCheckpointPoints = {
    "checkpoint.begin",  "checkpoint.file",        "checkpoint.state",  "checkpoint.manifest",
    "checkpoint.rename", "checkpoint.sync-folder", "checkpoint.verify", "checkpoint.sync-parent",
    "checkpoint.latest", "checkpoint.prune"};
constexpr std::array kServerStepPoints = {"server.before-update", "server.in-update",
                                          "server.before-commit", "server.before-answer"};

/// Events come in this part of a run, so that there is something before and after each.
constexpr double kFirst = 0.1;
constexpr double kLast = 0.8;

/// Only the chief writes checkpoints; servers are told who they work for and when to end.
bool can_have(Fault fault, TaskRole role) {
  if (fault == Fault::checkpoint) return role == TaskRole::chief;
  if (fault == Fault::rendezvous || fault == Fault::shutdown) return role != TaskRole::server;
  return true;
}

std::string point_of(const Pair& pair, Random& random) {
  const auto [fault, role] = pair;
  const bool server = role == TaskRole::server;
  switch (fault) {
    case Fault::exit:
      return server ? "server.before-answer" : "worker.step";
    case Fault::start:
      return server ? "server.start" : "worker.start";
    case Fault::rendezvous:
      return "worker.rendezvous";
    case Fault::step:
      return server ? kServerStepPoints[random.below(kServerStepPoints.size())] : "worker.step";
    case Fault::checkpoint:
      return kCheckpointPoints[random.below(kCheckpointPoints.size())];
    case Fault::shutdown:
      return "worker.shutdown";
    default:
      return "";
  }
}

/// Those that a task meets first in its life come first; what waits for its end comes last.
int place_in_round(const FaultEvent& event) {
  if (event.fault == Fault::shutdown) return 3;
  if (is_timed(event.fault)) return 2;
  return event.fault == Fault::start || event.fault == Fault::rendezvous ? 0 : 1;
}

bool fits(const Pair& pair, std::span<const FaultEvent> before) {
  const bool planted = !is_timed(pair.first);
  for (const FaultEvent& event : before) {
    const bool other_planted = !is_timed(event.fault);
    if (planted && other_planted) return false;
    // A fault that waits for the end needs its task to live until then.
    const bool waits = pair.first == Fault::shutdown || event.fault == Fault::shutdown;
    if (waits && pair.second == event.role) return false;
  }
  return true;
}

}  // namespace

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::kill:
      return "kill";
    case Fault::freeze:
      return "freeze";
    case Fault::slow:
      return "slow";
    case Fault::exit:
      return "exit";
    case Fault::start:
      return "crash at start";
    case Fault::rendezvous:
      return "crash in rendezvous";
    case Fault::step:
      return "crash in step";
    case Fault::checkpoint:
      return "crash in checkpoint";
    case Fault::shutdown:
      return "crash at shutdown";
  }
  return "";
}

const char* name_of(TaskRole role) {
  return role == TaskRole::worker ? "worker" : role == TaskRole::server ? "server" : "chief";
}

bool is_timed(Fault fault) {
  return fault == Fault::kill || fault == Fault::freeze || fault == Fault::slow;
}

FaultSchedule::FaultSchedule(std::uint64_t seed, std::vector<TestedStrategy> strategies)
    : random_(seed), strategies_(std::move(strategies)) {}

FaultSchedule::Pair FaultSchedule::draw(const TestedStrategy& strategy,
                                        std::span<const FaultEvent> before) {
  using Rank = std::tuple<int, int, std::uint64_t>;
  Pair best;
  Rank best_rank;
  bool found = false;
  for (const Fault fault : kFaults) {
    for (const TaskRole role : kRoles) {
      const Pair pair{fault, role};
      if (!can_have(fault, role) || (role == TaskRole::server && !strategy.has_servers)) continue;
      if (!fits(pair, before)) continue;
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

RoundPlan FaultSchedule::next(int most) {
  RoundPlan plan{.number = rounds_ + 1,
                 .strategy = strategies_[static_cast<std::size_t>(rounds_) % strategies_.size()],
                 .events = {}};
  ++rounds_;
  for (int i = 0; i < std::max(most, 1); ++i) {
    const Pair pair = draw(plan.strategy, plan.events);
    plan.events.push_back({.fault = pair.first,
                           .role = pair.second,
                           .pick = static_cast<int>(random_.below(1000)),
                           .point = point_of(pair, random_)});
  }
  std::ranges::stable_sort(plan.events, {}, place_in_round);
  const double part = (kLast - kFirst) / static_cast<double>(plan.events.size());
  for (std::size_t i = 0; i < plan.events.size(); ++i) {
    plan.events[i].at = kFirst + part * (static_cast<double>(i) + random_.uniform(0.1, 0.9));
  }
  return plan;
}

int planted_task(const FaultEvent& event, const ClusterSize& size) {
  if (event.role == TaskRole::chief) return 0;
  if (event.role == TaskRole::server) return event.pick % std::max(size.servers, 1);
  // The last in the line of those who become chief: it lives until the end.
  if (event.fault == Fault::shutdown) return size.workers - 1;
  return 1 + event.pick % std::max(size.workers - 1, 1);
}

std::string planted_faults(const RoundPlan& plan, const ClusterSize& size, std::int64_t steps) {
  for (const FaultEvent& event : plan.events) {
    if (is_timed(event.fault)) continue;
    const bool in_steps = event.fault == Fault::exit || event.fault == Fault::step;
    const bool server = event.role == TaskRole::server;
    const std::int64_t push = server ? plan.strategy.steps_per_push : 1;
    const auto passing =
        in_steps ? static_cast<std::int64_t>(event.at * static_cast<double>(steps)) / push : 1;
    return fmt::format("{}-{}:{}={}@{}", server ? "server" : "worker", planted_task(event, size),
                       event.point, event.fault == Fault::exit ? "exit" : "kill",
                       std::max<std::int64_t>(passing, 1));
  }
  return "";
}

}  // namespace cohort
