#pragma once

#include <cohort/job.h>

#include "server/run_server.h"

namespace cohort {

/// Server `server` of a job that trains with servers, for `steps` steps.
ServerOptions server_options(const Job& job, int server, std::int64_t steps, int cores);

/// The update rule on the servers: the job's, or for deltas the outer one.
///
/// Where a step's batch makes several updates (async, k-of-n) each is a part of a step. SGD's
/// momentum is then kept by the workers, each for its own gradients: on the server, velocity would
/// be made of pushes that are late by several updates, and swing (single runs of MNIST lost 0.6 to
/// 2.5 points). Rules whose steps have a size of their own (adam) take the part of it.
struct ServerRule {
  OptimizerOptions optimizer;
  double lr_factor = 1;        ///< What a step's learning rate is multiplied by for a push.
  double worker_momentum = 0;  ///< That workers apply before they push.
};
ServerRule server_rule(const StrategyOptions& strategy, const OptimizerOptions& own, int workers);

/// Whether workers push changes of their own parameters.
bool pushes_deltas(const StrategyOptions& strategy);

/// Whether parts of the batches are handed out to whoever is free.
bool hands_out_work(const StrategyOptions& strategy);

/// Whether momentum is applied by the compressor of gradients, not by the optimizer.
bool corrects_momentum(const StrategyOptions& strategy, const OptimizerOptions& own);

}  // namespace cohort
