#include "chaos/faults/planted_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace cohort {
namespace {

using Points = std::span<const char* const>;

constexpr std::array kCheckpointPoints = {
    "checkpoint.begin",  "checkpoint.file",        "checkpoint.state",  "checkpoint.manifest",
    "checkpoint.rename", "checkpoint.sync-folder", "checkpoint.verify", "checkpoint.sync-parent",
    "checkpoint.latest", "checkpoint.prune"};
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

std::string draw_point(Fault fault, TaskRole role, Random& random) {
  const Points points = points_of(fault, role);
  if (points.empty()) return "";
  return points[points.size() == 1 ? 0 : random.below(points.size())];
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
    return fmt::format("{}-{}:{}={}@{}", event.role == TaskRole::server ? "server" : "worker",
                       planted_task(event, size), event.point,
                       event.fault == Fault::exit ? "exit" : "kill",
                       passing_of(event, plan.strategy, steps));
  }
  return "";
}

}  // namespace cohort
