#include "strategy/server_options.h"

#include <algorithm>
#include <cmath>

#include "strategy/codec_shape.h"

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

/// No more than there are workers to push.
int quorum_of(const StrategyOptions& strategy, int workers) {
  return std::min(static_cast<int>(strategy.quorum), workers);
}

/// See ServerRule. `parts` updates bring what one step's batch brings.
void take_part_of_step(ServerRule& rule, double parts) {
  OptimizerOptions& optimizer = rule.optimizer;
  if (optimizer.kind == "sgd") {
    rule.worker_momentum = optimizer.momentum;
    optimizer = without_momentum(optimizer);
  } else if (optimizer.kind == "adagrad") {
    rule.lr_factor = 1 / std::sqrt(parts);  // Its sum of squares grows by 1/parts of a step's.
  } else {
    rule.lr_factor = 1.0 / parts;
  }
}

WorkSplit work_split(const Job& job, int workers) {
  const bool handed_out = hands_out_work(job.strategy);
  return {.workers = workers,
          .parts = handed_out ? static_cast<int>(job.cluster.workers) : workers};
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

ServerRule server_rule(const StrategyOptions& strategy, const OptimizerOptions& own,
                       const WorkSplit& split) {
  const auto consistency = consistency_of(strategy);
  const auto workers = static_cast<double>(split.workers);
  const auto parts = static_cast<double>(split.parts);
  if (pushes_deltas(strategy)) {
    ServerRule rule{outer_optimizer(strategy)};
    // The server takes a delta for one of as many parts of a step as there are workers.
    if (consistency == ShardRules::Consistency::async) rule.optimizer.lr *= workers / parts;
    return rule;
  }
  ServerRule rule{own};
  if (corrects_momentum(strategy, own)) rule.optimizer = without_momentum(rule.optimizer);
  if (consistency == ShardRules::Consistency::sync) return rule;
  rule.gradient_scale = 1 / parts;
  rule.updates_per_step = parts;
  if (consistency == ShardRules::Consistency::quorum) {
    // The server scales k gradients up to stand for all workers'.
    rule.gradient_scale = workers / parts;
    rule.updates_per_step = parts / quorum_of(strategy, split.workers);
  }
  take_part_of_step(rule, rule.updates_per_step);
  if (consistency == ShardRules::Consistency::quorum && rule.optimizer.kind == "sgd") {
    rule.lr_factor = quorum_of(strategy, split.workers) / workers;
  }
  // It joins a gradient that is smaller than the step's.
  if (own.kind != "adamw") rule.optimizer.weight_decay *= rule.gradient_scale;
  return rule;
}

std::vector<double> slot_factors(const ServerRule& rule) {
  std::vector<double> factors;
  const double square = rule.gradient_scale * rule.gradient_scale;
  for (const std::string& slot : make_optimizer(rule.optimizer)->slots()) {
    double unit = rule.gradient_scale;
    if (slot == "v") unit = square;
    if (slot == "sum") unit = square * rule.updates_per_step;
    factors.push_back(1 / unit);
  }
  return factors;
}

ServerOptions server_options(const Job& job, int server, const ServedGroup& group) {
  const StrategyOptions& strategy = job.strategy;
  const WorkSplit split = work_split(job, group.workers);
  ServerOptions options;
  options.server = server;
  options.epoch = group.epoch;
  options.replicas = static_cast<int>(strategy.replicas);
  options.servers = static_cast<int>(job.cluster.servers);
  options.rules = {.workers = group.workers,
                   .consistency = consistency_of(strategy),
                   .quorum = quorum_of(strategy, group.workers),
                   .drop_late = strategy.late == "drop",
                   .late_waits = job.cluster.servers == 1,
                   .weight = weight_of(strategy.weight),
                   .weight_power = strategy.weight_power,
                   .deltas = pushes_deltas(strategy),
                   .optimizer = server_rule(strategy, job.train.optimizer, split).optimizer,
                   .compression = strategy.compression};
  if (server == 0 && hands_out_work(strategy)) {
    options.board = WorkBoard::Options{.workers = group.workers,
                                       .left = {.parts = split.parts},
                                       .end_step = group.steps,
                                       .bound = {}};
    if (strategy.kind == "parameter-server" && strategy.consistency == "bounded") {
      options.board->bound = strategy.staleness;
    }
  }
  options.cores = group.cores;
  options.timeout = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(job.cluster.timeout_seconds));
  return options;
}

std::vector<std::size_t> server_memory_bytes(const Job& job, Model& model) {
  const ModelSize size = server_model_size(job.strategy, model);
  const WorkSplit split = work_split(job, static_cast<int>(job.cluster.workers));
  const OptimizerOptions optimizer =
      server_rule(job.strategy, job.train.optimizer, split).optimizer;
  const auto servers = static_cast<int>(job.cluster.servers);
  std::vector<std::size_t> bytes;
  for (int server = 0; server < servers; ++server) {
    bytes.push_back(shard_memory_bytes(size, servers, server, optimizer));
  }
  return bytes;
}

ModelSize server_model_size(const StrategyOptions& strategy, Model& model) {
  const FlatLayout dense = ModelLayout::of(model, table_place(strategy)).parameters;
  ModelSize size{.dense = dense.size, .matrices = codec_shape(dense).matrices};
  if (table_place(strategy) == Tables::among_parameters) return size;
  for (const NamedTensor& table : tables_of(model)) {
    const auto rows = static_cast<std::uint32_t>(table.tensor.size(0));
    size.tables.push_back({rows, static_cast<std::uint32_t>(table.tensor.numel() / rows)});
  }
  return size;
}

Tables table_place(const StrategyOptions& strategy) {
  return pushes_deltas(strategy) ? Tables::among_parameters : Tables::apart;
}

}  // namespace cohort
