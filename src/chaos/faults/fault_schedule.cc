#include "chaos/faults/fault_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "cluster/task_name.h"

namespace cohort::chaos {
namespace {

// ---- the faults

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

/// Whether a pair can be in a round with those that were drawn before it.
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

// ---- where planted faults wait

using Points = std::span<const char* const>;

/// Every step of the recipe by which a checkpoint becomes valid.
constexpr std::array kCheckpointPoints = {
    "checkpoint.begin",  "checkpoint.file",        "checkpoint.state",  "checkpoint.manifest",
    "checkpoint.rename", "checkpoint.sync-folder", "checkpoint.verify", "checkpoint.sync-parent",
    "checkpoint.latest", "checkpoint.prune"};
/// Before, in and after the update of a shard, and before the answer to the worker.
constexpr std::array kServerStepPoints = {"server.before-update", "server.in-update",
                                          "server.before-commit", "server.before-answer"};
/// What a survivor comes by, in this order, when another one was lost.
constexpr std::array kRecoveryPoints = {"worker.pause", "worker.carry", "worker.rendezvous",
                                        "worker.joined"};

constexpr std::array kServerAnswer = {"server.before-answer"};
constexpr std::array kServerStart = {"server.start"};
constexpr std::array kWorkerStart = {"worker.start"};
constexpr std::array kWorkerStep = {"worker.step"};
constexpr std::array kRendezvous = {"worker.rendezvous"};
constexpr std::array kBetweenPushes = {"worker.between-pushes"};
constexpr std::array kShutdown = {"worker.shutdown"};

/// The failpoints of a planted fault; none where it is not planted.
Points points_of(Fault fault, TaskRole role) {
  const bool server = role == TaskRole::server;
  switch (fault) {
    case Fault::exit:
      return server ? Points(kServerAnswer) : Points(kWorkerStep);
    case Fault::start:
      return server ? Points(kServerStart) : Points(kWorkerStart);
    case Fault::rendezvous:
      return kRendezvous;
    case Fault::step:
      return server ? Points(kServerStepPoints) : Points(kWorkerStep);
    case Fault::between_pushes:
      return kBetweenPushes;
    case Fault::checkpoint:
      return kCheckpointPoints;
    case Fault::shutdown:
      return kShutdown;
    case Fault::meanwhile:
      return kRecoveryPoints;
    default:
      return {};
  }
}

/// One of the failpoints that fit, by chance; empty where the fault is not planted.
std::string draw_point(Fault fault, TaskRole role, Random& random) {
  const Points points = points_of(fault, role);
  if (points.empty()) return "";
  return points[points.size() == 1 ? 0 : random.below(points.size())];
}

/// Where steps are handed out, a worker that got little of the machine makes fewer than its share;
/// it shall come by its failpoint all the same.
constexpr std::int64_t kLeastShare = 4;

/// At which passing a fault happens. Faults in a phase happen in the first; but for those of a
/// recovery that the first group came by too.
std::int64_t passing_of(const FaultEvent& event, const TestedStrategy& strategy,
                        std::int64_t steps) {
  if (event.fault == Fault::meanwhile) {
    return event.point == "worker.rendezvous" || event.point == "worker.joined" ? 2 : 1;
  }
  const bool server = event.role == TaskRole::server;
  const bool counts_pushes = server || event.fault == Fault::between_pushes;
  const bool counts = counts_pushes || event.fault == Fault::exit || event.fault == Fault::step;
  if (!counts || event.fault == Fault::start) return 1;
  auto passing = static_cast<std::int64_t>(event.at * static_cast<double>(steps));
  if (counts_pushes) passing /= strategy.steps_per_push;
  if (!server && !strategy.traits.loss_stops_all) passing /= kLeastShare;
  return std::max<std::int64_t>(passing, 1);
}

}  // namespace

const char* name_of(Fault fault) {
  return row_of(fault).name;
}

const char* name_of(TaskRole role) {
  return role == TaskRole::chief ? "chief" : role_in_files(role);
}

const char* role_in_files(TaskRole role) {
  return role == TaskRole::server ? cluster::kServerRole : cluster::kWorkerRole;
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

/// The pair that came least with this strategy, among those the one that came least in all, among
/// those by chance. There is always one that fits: a kill of a worker or of the chief.
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

/// The middle of the run is cut into as many parts as there are events, and each has its moment
/// somewhere in its own part, so that no two come close together.
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

int planted_task(const FaultEvent& event, const ClusterSize& size) {
  if (event.role == TaskRole::chief) return 0;
  if (event.role == TaskRole::server) return event.pick % std::max(size.servers, 1);
  // The last in the line of those who become chief: it lives until the end.
  if (event.fault == Fault::shutdown) return size.workers - 1;
  return 1 + event.pick % std::max(size.workers - 1, 1);
}

std::string planted_faults(const RoundPlan& plan, const ClusterSize& size, std::int64_t steps) {
  for (const FaultEvent& event : plan.events) {
    if (!is_planted(event.fault)) continue;
    return fmt::format(
        "{}:{}={}@{}",
        cluster::task_name(role_in_files(event.role), planted_task(event, size), '-'), event.point,
        event.fault == Fault::exit ? "exit" : "kill", passing_of(event, plan.strategy, steps));
  }
  return "";
}

}  // namespace cohort::chaos
