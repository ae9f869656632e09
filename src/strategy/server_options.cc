#include "strategy/server_options.h"

#include <cmath>

namespace cohort {
namespace {

ShardRules::Consistency consistency_of(const StrategyOptions& strategy) {
  using Consistency = ShardRules::Consistency;
  if (strategy.kind == "averaging") {
    return strategy.mode == "partial" ? Consistency::quorum : Consistency::sync;
  }
  if (strategy.consistency == "sync") return Consistency::sync;
  return strategy.consistency == "k-of-n" ? Consistency::quorum : Consistency::async;
}

ShardRules::Weight weight_of(const std::string& weight) {
  if (weight == "1/staleness") return ShardRules::Weight::inverse;
  return weight == "none" ? ShardRules::Weight::none : ShardRules::Weight::power;
}

OptimizerOptions outer_optimizer(const StrategyOptions& strategy) {
  OptimizerOptions outer;
  outer.kind = "sgd";
  outer.lr = 1;
  if (strategy.kind != "averaging") return outer;
  outer.lr = strategy.outer.lr;
  if (strategy.outer.kind != "mean") outer.momentum = strategy.outer.momentum;
  outer.nesterov = strategy.outer.kind == "nesterov";
  return outer;
}

/// Somebody else applies it. Weight decay then no longer goes through the velocity, which adds up
/// 1/(1-momentum) of it.
void drop_momentum(OptimizerOptions& optimizer) {
  optimizer.weight_decay /= 1 - optimizer.momentum;
  optimizer.momentum = 0;
  optimizer.nesterov = false;
}

/// See ServerRule. `parts` updates bring what one step's batch brings.
void take_part_of_step(ServerRule& rule, double parts) {
  OptimizerOptions& optimizer = rule.optimizer;
  if (optimizer.kind == "sgd") {
    rule.worker_momentum = optimizer.momentum;
    drop_momentum(optimizer);
  } else if (optimizer.kind == "adagrad") {
    rule.lr_factor = 1 / std::sqrt(parts);  // Its sum of squares grows by 1/parts of a step's.
  } else {
    rule.lr_factor = 1.0 / parts;
  }
}

}  // namespace

bool pushes_deltas(const StrategyOptions& strategy) {
  return strategy.kind == "averaging" || strategy.push == "delta";
}

bool hands_out_work(const StrategyOptions& strategy) {
  return consistency_of(strategy) != ShardRules::Consistency::sync;
}

bool corrects_momentum(const StrategyOptions& strategy, const OptimizerOptions& own) {
  return strategy.compression.kind == "topk" && strategy.compression.momentum_correction &&
         !pushes_deltas(strategy) && own.kind == "sgd" && own.momentum > 0 && !own.nesterov;
}

ServerRule server_rule(const StrategyOptions& strategy, const OptimizerOptions& own, int workers) {
  if (pushes_deltas(strategy)) return {outer_optimizer(strategy)};
  ServerRule rule{own};
  if (corrects_momentum(strategy, own)) drop_momentum(rule.optimizer);
  const auto consistency = consistency_of(strategy);
  if (consistency == ShardRules::Consistency::async) {
    take_part_of_step(rule, workers);
    // It joins a gradient that is a part of the step's.
    if (own.kind != "adamw") rule.optimizer.weight_decay /= workers;
  }
  if (consistency == ShardRules::Consistency::quorum) {
    const double parts = static_cast<double>(workers) / static_cast<double>(strategy.quorum);
    take_part_of_step(rule, parts);
    // The server scales k gradients up to stand for all; here they are k/workers of a step.
    if (rule.optimizer.kind == "sgd") rule.lr_factor = 1 / parts;
  }
  return rule;
}

ServerOptions server_options(const Job& job, int server, std::int64_t steps, int cores) {
  const StrategyOptions& strategy = job.strategy;
  const auto workers = static_cast<int>(job.cluster.workers);
  ServerOptions options;
  options.server = server;
  options.rules = {.workers = workers,
                   .consistency = consistency_of(strategy),
                   .quorum = static_cast<int>(strategy.quorum),
                   .drop_late = strategy.late == "drop",
                   .late_waits = job.cluster.servers == 1,
                   .weight = weight_of(strategy.weight),
                   .weight_power = strategy.weight_power,
                   .deltas = pushes_deltas(strategy),
                   .optimizer = server_rule(strategy, job.train.optimizer, workers).optimizer,
                   .compression = strategy.compression};
  if (server == 0 && hands_out_work(strategy)) {
    options.board = WorkBoard::Options{
        .workers = workers, .parts = workers, .first_step = 0, .end_step = steps, .bound = {}};
    if (strategy.kind == "parameter-server" && strategy.consistency == "bounded") {
      options.board->bound = strategy.staleness;
    }
  }
  options.cores = cores;
  options.timeout = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(job.cluster.timeout_seconds));
  return options;
}

}  // namespace cohort
