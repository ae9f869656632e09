#include "job/check_strategy.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/nearest_name.h"

namespace cohort {
namespace {

/// A key that the chosen strategy does not read would be a wish silently not granted.
void check_keys_are_read(const StrategyOptions& strategy) {
  const StrategyOptions standard;
  struct Use {
    const char* key;
    bool set;
    std::vector<std::string> kinds;
  };
  const std::vector<Use> uses = {
      {"algorithm", strategy.algorithm != standard.algorithm, {"allreduce"}},
      {"consistency", strategy.consistency != standard.consistency, {"parameter-server"}},
      {"staleness", strategy.staleness != standard.staleness, {"parameter-server"}},
      {"replicas", strategy.replicas != standard.replicas, {"parameter-server", "averaging"}},
      {"quorum", strategy.quorum != standard.quorum, {"parameter-server", "averaging"}},
      {"late", strategy.late != standard.late, {"parameter-server", "averaging"}},
      {"push", strategy.push != standard.push, {"parameter-server"}},
      {"local_steps", strategy.local_steps != standard.local_steps, {"parameter-server"}},
      {"weight", strategy.weight != standard.weight, {"parameter-server", "averaging"}},
      {"mode", strategy.mode != standard.mode, {"averaging"}},
      {"every", strategy.every != standard.every, {"averaging"}},
      {"outer.kind", strategy.outer.kind != standard.outer.kind, {"averaging"}},
      {"send", strategy.send != standard.send, {"gossip"}},
      {"topology", strategy.topology != standard.topology, {"gossip"}},
  };
  for (const Use& use : uses) {
    if (!use.set || std::ranges::find(use.kinds, strategy.kind) != use.kinds.end()) continue;
    fail(ErrorCode::invalid, "strategy.{} is set, but only the strategy {} reads it, not \"{}\"",
         use.key, one_of(use.kinds), strategy.kind);
  }
}

void check_quorum(const StrategyOptions& strategy, std::int64_t workers) {
  const bool uses_quorum =
      (strategy.kind == "parameter-server" && strategy.consistency == "k-of-n") ||
      (strategy.kind == "averaging" && strategy.mode == "partial");
  if (!uses_quorum) {
    if (strategy.quorum == 0) return;
    fail(ErrorCode::invalid,
         "strategy.quorum is {}, but only consistency \"k-of-n\" and mode \"partial\" read it",
         strategy.quorum);
  }
  if (strategy.quorum < 1 || strategy.quorum > workers) {
    fail(ErrorCode::invalid, "strategy.quorum is {}; with {} worker{} it can be 1 to {}",
         strategy.quorum, workers, workers == 1 ? "" : "s", workers);
  }
}

void check_push(const StrategyOptions& strategy) {
  if (strategy.kind != "parameter-server") return;
  if (strategy.push == "gradient" && strategy.local_steps > 1) {
    fail(ErrorCode::invalid,
         "strategy.local_steps is {}, but gradients are pushed every step; set strategy.push to "
         "\"delta\"",
         strategy.local_steps);
  }
}

/// What each strategy can make smaller.
std::vector<std::string> usable_codecs(const StrategyOptions& strategy) {
  if (strategy.kind == "gossip" && strategy.send == "parameters") {
    return {"none", "fp16", "bf16", "int8", "topk"};
  }
  if (strategy.kind == "allreduce") {
    return {"none", "fp16", "bf16", "int8", "sign", "topk", "lowrank", "auto"};
  }
  return {"none", "fp16", "bf16", "int8", "sign", "topk", "lowrank"};
}

void check_compression(const StrategyOptions& strategy) {
  const std::vector<std::string> usable = usable_codecs(strategy);
  if (std::ranges::find(usable, strategy.compression.kind) != usable.end()) return;
  fail(ErrorCode::invalid, "strategy \"{}\"{} cannot use compression \"{}\"; it can use {}",
       strategy.kind,
       strategy.kind == "gossip" && strategy.send == "parameters" ? " of parameters" : "",
       strategy.compression.kind, one_of(usable));
}

/// Workers whose models are never the same add each other's codec errors to their own, and momentum
/// makes tens of steps of each: 150 steps of digits ended at 50 to 98 % instead of 99.
void check_momentum(const Job& job) {
  const StrategyOptions& strategy = job.strategy;
  const std::string& codec = strategy.compression.kind;
  const OptimizerOptions& optimizer = job.train.optimizer;
  if (strategy.kind != "gossip" || (codec != "sign" && codec != "lowrank")) return;
  if (optimizer.kind != "sgd" || optimizer.momentum == 0) return;
  fail(ErrorCode::invalid,
       "gossip of gradients with compression \"{}\" does not learn well with momentum, and "
       "train.optimizer.momentum is {}; set it to 0, or strategy.compression.kind to \"topk\" or "
       "\"int8\"",
       codec, optimizer.momentum);
}

void check_servers(const Job& job) {
  const std::int64_t servers = job.cluster.servers;
  if (!uses_servers(job.strategy) && servers > 0) {
    fail(ErrorCode::invalid,
         "cluster.servers is {}, but the strategy \"{}\" uses no servers; set it to 0 or choose "
         "\"parameter-server\" or \"averaging\"",
         servers, job.strategy.kind);
  }
}

void check_replicas(const Job& job) {
  if (job.strategy.replicas == 1 || job.cluster.servers > 1) return;
  fail(ErrorCode::invalid,
       "strategy.replicas is {}, but there is no other server for a copy: cluster.servers is {}; "
       "set "
       "it to 2 or more",
       job.strategy.replicas, job.cluster.servers);
}

void check_outer(const StrategyOptions& strategy) {
  if (strategy.outer.kind == "mean" || strategy.outer.momentum < 1) return;
  fail(ErrorCode::invalid, "strategy.outer.momentum is {}; it must be below 1",
       strategy.outer.momentum);
}

}  // namespace

bool uses_servers(const StrategyOptions& strategy) {
  return strategy.kind == "parameter-server" || strategy.kind == "averaging";
}

void check_strategy(const Job& job) {
  check_keys_are_read(job.strategy);
  check_quorum(job.strategy, job.cluster.workers);
  check_push(job.strategy);
  check_compression(job.strategy);
  check_momentum(job);
  check_servers(job);
  check_replicas(job);
  check_outer(job.strategy);
}

}  // namespace cohort
