#include "train/run/run_plan.h"

#include <algorithm>
#include <sstream>

#include "base/fail.h"
#include "base/failpoint.h"
#include "job/check_job.h"
#include "kinds/strategy_table.h"

namespace cohort::training {
namespace {

/// Processes that one launcher starts as workers at most, at the start or later.
constexpr int kMostWorkers = 1024;

}  // namespace

std::optional<cluster::LaunchEnvironment> environment_of(const Variables& variables) {
  return cluster::launch_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Job resolved_job(Job job, const std::optional<cluster::LaunchEnvironment>& environment) {
  if (environment) job.cluster.workers = environment->world;
  if (job.cluster.servers == 0 && kinds::uses_servers(job.strategy.kind)) job.cluster.servers = 1;
  job::check_job(job);
  if (environment && job.cluster.replication == "in-graph" && environment->world > 1) {
    fail(ErrorCode::invalid,
         "replication in-graph runs all workers in one process, but WORLD_SIZE={} asks for as many "
         "processes; use between-graph",
         environment->world);
  }
  return job;
}

void check_run(const Job& job, const Variables& environment) {
  resolved_job(job, environment_of(environment));
}

// Which processes this launcher starts:
//
//   in-graph                       one, with all workers and servers as threads
//   started by torchrun or alike   one worker, of the rank that the environment says; the launcher
//                                  of rank 0 has the servers as well
//   otherwise                      all workers and all servers, a process each
std::vector<launch::ProcessPlan> plan_processes(
    const Job& job, const std::optional<cluster::LaunchEnvironment>& environment) {
  const auto world = static_cast<int>(job.cluster.workers);
  const auto servers = static_cast<int>(job.cluster.servers);
  const bool remote = environment && world > 1;
  std::vector<launch::ProcessPlan> plans;
  if (!environment && job.cluster.replication == "in-graph" && world + servers > 1) {
    launch::ProcessPlan all{.world = world};
    for (int rank = 0; rank < world; ++rank) all.workers.push_back(rank);
    for (int server = 0; server < servers; ++server) all.servers.push_back(server);
    return {all};
  }
  if (environment) {
    plans.push_back({.workers = {environment->rank}, .world = world, .remote = remote});
  } else {
    for (int rank = 0; rank < world; ++rank) {
      plans.push_back({.workers = {rank}, .world = world, .place = {rank, world}});
    }
  }
  for (int server = 0; server < servers && (!environment || environment->rank == 0); ++server) {
    plans.push_back({.servers = {server}, .world = world, .remote = remote});
  }
  return plans;
}

bool can_regroup(const Job& job, const std::optional<cluster::LaunchEnvironment>& environment) {
  const bool threads =
      job.cluster.replication == "in-graph" && job.cluster.workers + job.cluster.servers > 1;
  return !threads && !(environment && job.cluster.workers > 1);
}

// How many workers the control block has cards for, which cannot grow later. More than there are
// rows in a micro-batch would have nothing to do.
int most_workers(const Job& job, const std::optional<cluster::LaunchEnvironment>& environment) {
  const std::int64_t workers = job.cluster.workers;
  if (!can_regroup(job, environment)) return static_cast<int>(workers);
  if (workers > kMostWorkers) {
    fail(ErrorCode::invalid, "cluster.workers is {}; one launcher starts at most {}", workers,
         kMostWorkers);
  }
  const std::int64_t shares = job.train.batch / std::max<std::int64_t>(job.train.accumulate, 1);
  return static_cast<int>(std::clamp<std::int64_t>(shares, workers, kMostWorkers));
}

void plant_faults(std::vector<launch::ProcessPlan>& plans, const std::string& faults) {
  std::istringstream items(faults);
  for (std::string item; std::getline(items, item, ';');) {
    const auto colon = item.find(':');
    const auto plan = std::ranges::find_if(plans, [&](const launch::ProcessPlan& candidate) {
      return launch::task_name(candidate, '-') == item.substr(0, colon);
    });
    if (colon == std::string::npos || plan == plans.end()) {
      fail(ErrorCode::invalid,
           "fault \"{}\" names no task of this run, as in worker-1:worker.step=kill@20", item);
    }
    if (!plan->failpoints.empty()) plan->failpoints += ',';
    plan->failpoints += item.substr(colon + 1);
    set_failpoints(plan->failpoints);  // Refuses what it does not understand.
    set_failpoints("");
  }
}

}  // namespace cohort::training
