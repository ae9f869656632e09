#pragma once

#include <cohort/job.h>

#include <vector>

#include "compression/error_feedback.h"
#include "optimizer/optimizer.h"
#include "server/door/run_server.h"
#include "server/wire/shard_shape.h"
#include "tensor/flat_space.h"

namespace cohort::strategy {

/// What a job's words mean to servers: which rule they update by, how they make updates of pushes,
/// which part of the model they keep, how much memory that takes. Workers and servers both ask
/// here, so that they agree without a message.

/// Whom a server serves.
struct ServedGroup {
  int workers = 1;
  std::int64_t generation = 0;  ///< Of the membership.
  std::int64_t steps = 0;       ///< Of the whole job.
  int cores = 1;
};

/// Server `server` of a job that trains with servers, for one group of workers. The first group has
/// `job.cluster.workers`; steps are handed out in as many parts in every group.
server::ServerOptions server_options(const Job& job, int server, const ServedGroup& group);

/// How many bytes of memory that outlives it each server of the job needs.
std::vector<std::size_t> server_memory_bytes(const Job& job, Model& model);

/// A model as servers see it: where gradients are pushed, tables stand apart.
server::ModelSize server_model_size(const StrategyOptions& strategy, Model& model);
tensor::Tables table_place(const StrategyOptions& strategy);

/// The update rule on the servers: the job's, or for deltas the outer one.
///
/// Where a step's batch makes several updates (async, k-of-n) each is a share of a step, see
/// ShardRules. SGD's momentum is then kept by the workers, each for its own gradients: on the
/// server, velocity would be made of pushes that are late by several updates, and swing (single
/// runs of MNIST lost 0.6 to 2.5 points).
struct ServerRule {
  OptimizerOptions optimizer;
  compression::WorkerMomentum worker_momentum = {};  ///< That workers apply before they push.

  std::size_t slots() const { return optimizer::make_optimizer(optimizer)->slots().size(); }
};
ServerRule server_rule(const StrategyOptions& strategy, const OptimizerOptions& own);

/// How servers of this strategy make updates of pushes.
server::ShardRules::Consistency consistency_of(const StrategyOptions& strategy);

}  // namespace cohort::strategy
