#include "strategy/servers/server_rule.h"

#include <algorithm>

#include "kinds/strategy_table.h"
#include "optimizer/learning_rate.h"
#include "strategy/compressed_gradients.h"
#include "strategy/strategy.h"

namespace cohort::strategy {
namespace {

server::ShardRules::Weight weight_of(const std::string& weight) {
  if (weight == "1/staleness") return server::ShardRules::Weight::inverse;
  return weight == "none" ? server::ShardRules::Weight::none : server::ShardRules::Weight::power;
}

/// A delta is added as it is, by SGD with rate 1; averaging has a rate of its own, and may have
/// momentum.
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

/// Of a step's batch: where nothing is handed out, every worker has one.
int parts_of(const Job& job, int workers) {
  return kinds::way_of(job.strategy).traits.hands_out_work ? static_cast<int>(job.cluster.workers)
                                                           : workers;
}

/// Also of a push that an earlier group of more workers has made.
double most_lr_of(const Job& job, const ServedGroup& group) {
  const auto workers = std::max<std::int64_t>(job.cluster.workers, group.workers);
  return optimizer::most_learning_rate(job.train.schedule, job.train.optimizer.lr, group.steps,
                                       workers);
}

}  // namespace

server::ShardRules::Consistency consistency_of(const StrategyOptions& strategy) {
  using Consistency = server::ShardRules::Consistency;
  if (strategy.kind == "averaging") {
    return strategy.mode == "partial" ? Consistency::quorum : Consistency::sync;
  }
  if (strategy.consistency == "sync") return Consistency::sync;
  return strategy.consistency == "k-of-n" ? Consistency::quorum : Consistency::async;
}

// Who has the optimizer. Deltas are steps that workers have made already: servers add them up. In
// sync, gradients of a whole step arrive together and the servers' optimizer is the job's.
// Otherwise pushes of many workers interleave, and a velocity of all of them would push each
// further than its own gradients say: with SGD momentum is then the worker's, and the servers apply
// what comes.
ServerRule server_rule(const StrategyOptions& strategy, const OptimizerOptions& own) {
  if (pushes_deltas(strategy)) return {.optimizer = outer_optimizer(strategy)};
  if (corrects_momentum(strategy, own)) return {.optimizer = optimizer::without_momentum(own)};
  const bool sync = consistency_of(strategy) == server::ShardRules::Consistency::sync;
  if (sync || own.kind != "sgd") return {.optimizer = own};
  return {.optimizer = optimizer::without_momentum(own), .worker_momentum = worker_momentum(own)};
}

// All that a server is told of a job, in one place: a server knows rules, sizes and a board, and
// nothing of strategies. Of a group it serves the numbers of that group; the parts of a step's
// batch stay those of the job, so that a step is as long with fewer workers as with all.
server::ServerOptions server_options(const Job& job, int server, const ServedGroup& group) {
  const StrategyOptions& strategy = job.strategy;
  const int parts = parts_of(job, group.workers);
  server::ServerOptions options;
  options.server = server;
  options.generation = group.generation;
  options.replicas = static_cast<int>(strategy.replicas);
  options.servers = static_cast<int>(job.cluster.servers);
  options.rules = {.workers = group.workers,
                   .parts = parts,
                   .consistency = consistency_of(strategy),
                   .quorum = quorum_of(strategy, group.workers),
                   .drop_late = strategy.late == "drop",
                   .late_waits = job.cluster.servers == 1,
                   .weight = weight_of(strategy.weight),
                   .weight_power = strategy.weight_power,
                   .deltas = pushes_deltas(strategy),
                   .most_lr = most_lr_of(job, group),
                   .optimizer = server_rule(strategy, job.train.optimizer).optimizer,
                   .compression = strategy.compression};
  // One server hands out the work of all.
  if (server == 0 && kinds::way_of(strategy).traits.hands_out_work) {
    options.board = cluster::WorkBoard::Options{
        .workers = group.workers, .left = {.parts = parts}, .end_step = group.steps, .bound = {}};
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
  const server::ModelSize size = server_model_size(job.strategy, model);
  const OptimizerOptions optimizer = server_rule(job.strategy, job.train.optimizer).optimizer;
  const auto servers = static_cast<int>(job.cluster.servers);
  std::vector<std::size_t> bytes;
  for (int server = 0; server < servers; ++server) {
    bytes.push_back(server::shard_memory_bytes(size, servers, server, optimizer));
  }
  return bytes;
}

server::ModelSize server_model_size(const StrategyOptions& strategy, Model& model) {
  const tensor::FlatLayout dense = tensor::ModelLayout::of(model, table_place(strategy)).parameters;
  server::ModelSize size{.dense = dense.size, .matrices = codec_shape(dense).matrices};
  if (table_place(strategy) == tensor::Tables::among_parameters) return size;
  for (const NamedTensor& table : tensor::tables_of(model)) {
    const auto rows = static_cast<std::uint32_t>(table.tensor.size(0));
    size.tables.push_back({rows, static_cast<std::uint32_t>(table.tensor.numel() / rows)});
  }
  return size;
}

tensor::Tables table_place(const StrategyOptions& strategy) {
  return pushes_deltas(strategy) ? tensor::Tables::among_parameters : tensor::Tables::apart;
}

}  // namespace cohort::strategy
