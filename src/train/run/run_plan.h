#pragma once

#include <cohort/job.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/launch_environment.h"
#include "launch/processes.h"

// What is decided before any process of a run is started, from the job and the environment alone:
// how many workers there are, which processes this launcher starts, and which of them meet with
// planted faults. No files, no processes.
//
// There are three shapes of a run:
//
//   between-graph (usual)   a process per worker and server, all of this launcher: groups can
//                           change
//   in-graph                one process, in which all workers and servers are threads
//   of several launchers    torchrun or the like has started one launcher per worker (RANK,
//                           WORLD_SIZE, …): this one starts its own worker, and the one with rank 0
//                           the servers, too

namespace cohort::training {

/// Environment variables by name; as in StartOptions.
using Variables = std::map<std::string, std::string>;

/// What another launcher than us has said in them: nothing where this launcher starts all workers.
std::optional<cluster::LaunchEnvironment> environment_of(const Variables& variables);

/// The job as it will run: the environment's number of workers wins over the file's, and a strategy
/// that needs servers has at least one. Throws Error where it cannot run as it is.
Job resolved_job(Job job, const std::optional<cluster::LaunchEnvironment>& environment);

/// The same, for its error alone.
void check_run(const Job& job, const Variables& environment);

/// The processes that this launcher starts at first, workers before servers. `job` is resolved here
/// and below.
std::vector<launch::ProcessPlan> plan_processes(
    const Job& job, const std::optional<cluster::LaunchEnvironment>& environment);

/// Whether lost workers can be replaced one by one, and their number can change. Threads cannot be
/// replaced one by one, and workers of other launchers are their business.
bool can_regroup(const Job& job, const std::optional<cluster::LaunchEnvironment>& environment);

/// How many workers there may ever be at once: as many as the run could have been started with, so
/// that every worker has a sample of each batch. Throws Error(invalid) where the job has more.
int most_workers(const Job& job, const std::optional<cluster::LaunchEnvironment>& environment);

/// Gives processes the failpoints that are planned for them. `faults` is a list of TASK:FAILPOINTS,
/// separated by semicolons, as in "worker-1:worker.step=kill@20". Only the first process of a task
/// has them: the one that takes its place lives. Throws Error(invalid) where one names no task or
/// is not understood.
void plant_faults(std::vector<launch::ProcessPlan>& plans, const std::string& faults);

}  // namespace cohort::training
