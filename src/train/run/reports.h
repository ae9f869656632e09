#pragma once

#include <cohort/train.h>

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/server_report.h"
#include "cluster/store.h"
#include "launch/control/control_block.h"
#include "launch/launch.h"

// What tasks report at their end, and how a Summary is made of it in the launcher:
//
//   a worker of this launcher ──► its card in the control block ──────────────────────┐
//   a worker of another one ──► the store ──► the chief, onto that worker's card here ─┼─► Summary
//   a server ──► its card, or memory that outlives it (server_memories.h) ────────────┘
//
// Where several launchers run one job each has a summary; only that of rank 0 has everybody's
// numbers.

namespace cohort::training {

/// Workers whose launcher is not the chief's tell the chief their results through the store, so
/// that one summary has them all.
void send_report(cluster::Store& store, int rank, const launch::WorkerResult& result);

/// In the chief: fills the cards of all other ranks. Ranks that do not report in time stay as they
/// are, with a warning.
void collect_reports(cluster::Store& store, launch::ControlBlock& control, Deadline deadline);

/// Steps, speed, bytes, phases and a line per worker, of all workers that ever were there. The
/// chief's word counts for what all have in common.
void fill_from_workers(Summary& summary, const launch::ControlBlock& control);

/// Staleness, counts per shard and a line per server. `reports`: what the servers' memory says,
/// where it outlives them; empty: what is on their cards counts.
void fill_from_servers(Summary& summary, std::span<const launch::ServerCard> servers,
                       std::vector<cluster::ServerReport> reports);

/// Status and exit code, failures and restarts. "completed" where the chief has saved the end,
/// whatever happened to workers afterwards; otherwise "interrupted" or "failed".
void set_status(Summary& summary, const launch::LaunchResult& result,
                const launch::ControlBlock& control);

/// The staleness of the pushes to all servers together.
StalenessSummary summarize_staleness(std::span<const cluster::ServerReport> servers);

/// What each of them has counted.
std::vector<ShardSummary> summarize_shards(std::span<const cluster::ServerReport> servers);

}  // namespace cohort::training
