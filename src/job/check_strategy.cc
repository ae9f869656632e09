#include "job/check_job.h"

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fail.h"
#include "base/names.h"
#include "compression/codec.h"
#include "job/key_table.h"
#include "kinds/strategy_table.h"

namespace cohort::job {
namespace {

/// Keys that refine another one, and change nothing where that is not read.
constexpr std::string_view kRefining[] = {"bucket_bytes", "weight_power", "outer.lr",
                                          "outer.momentum"};

/// Whether the key has another value than in a job that says nothing.
bool is_set(const Key<Job>& key, const Job& job) {
  const Job standard;
  return std::visit(
      [&](auto get) {
        using Value = std::decay_t<decltype(value_of(get, job))>;
        if constexpr (std::same_as<Value, std::vector<LayerOptions>>) {
          return false;  // No key of a strategy.
        } else {
          return value_of(get, job) != value_of(get, standard);
        }
      },
      key.field);
}

/// A key that the chosen strategy does not read would be a wish silently not granted. Who reads
/// which is in kinds/strategy_table.h; a key that no kind is listed for is not looked at. What has
/// its default counts as not set, so writing a default down where it is not read is no mistake.
void check_keys_are_read(const Job& job) {
  const std::string section = "strategy.";
  const kinds::StrategyWay way = kinds::way_of(job.strategy);
  for (const Key<Job>& key : job_keys()) {
    if (!key.path.starts_with(section) || !is_set(key, job)) continue;
    const std::string name = key.path.substr(section.size());
    const std::vector<std::string> readers = kinds::kinds_that_read(name);
    if (readers.empty() || std::ranges::find(kRefining, name) != std::end(kRefining)) continue;
    if (std::ranges::find(readers, way.kind) != readers.end()) continue;
    fail(ErrorCode::invalid, "strategy.{} is set, but only the strategy {} reads it, not \"{}\"",
         name, one_of(readers), way.kind);
  }
}

/// A quorum is 1 to all workers for those who take one, and 0 for all others.
void check_quorum(const StrategyOptions& strategy, std::int64_t workers) {
  if (!kinds::way_of(strategy).traits.takes_quorum) {
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

/// Own steps between two pushes make sense only where the push is what they changed.
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
std::vector<std::string> usable_codecs(const kinds::StrategyTraits& traits) {
  std::vector<std::string> usable;
  for (const compression::CodecRow& codec : compression::codec_table()) {
    if (codec.of_models || !traits.sends_models) usable.push_back(codec.name);
  }
  if (traits.tries_codecs) usable.push_back(compression::kAutoCodec);
  return usable;
}

/// Codecs that lose signs or sizes are of no use where models travel and not gradients, and not
/// every strategy can find out by itself which codec pays.
void check_compression(const StrategyOptions& strategy) {
  const kinds::StrategyWay way = kinds::way_of(strategy);
  const std::vector<std::string> usable = usable_codecs(way.traits);
  if (std::ranges::find(usable, strategy.compression.kind) != usable.end()) return;
  fail(ErrorCode::invalid, "strategy \"{}\"{} cannot use compression \"{}\"; it can use {}",
       strategy.kind, way.traits.sends_models ? " of " + way.value : "", strategy.compression.kind,
       one_of(usable));
}

/// Workers whose models are never the same add each other's codec errors to their own, and momentum
/// makes tens of steps of each: 150 steps of digits ended at 50 to 98 % instead of 99.
void check_momentum(const Job& job) {
  const StrategyOptions& strategy = job.strategy;
  const std::string& codec = strategy.compression.kind;
  const OptimizerOptions& optimizer = job.train.optimizer;
  if (strategy.kind != "gossip" || codec == compression::kAutoCodec ||
      compression::codec_row(codec).with_loose_momentum) {
    return;
  }
  if (optimizer.kind != "sgd" || optimizer.momentum == 0) return;
  fail(ErrorCode::invalid,
       "gossip of gradients with compression \"{}\" does not learn well with momentum, and "
       "train.optimizer.momentum is {}; set it to 0, or strategy.compression.kind to \"topk\" or "
       "\"int8\"",
       codec, optimizer.momentum);
}

std::vector<std::string> kinds_with_servers() {
  std::vector<std::string> kinds = kinds::strategy_kinds();
  std::erase_if(kinds, [](const std::string& kind) { return !kinds::uses_servers(kind); });
  return kinds;
}

void check_servers(const Job& job) {
  const std::int64_t servers = job.cluster.servers;
  if (!kinds::uses_servers(job.strategy.kind) && servers > 0) {
    fail(ErrorCode::invalid,
         "cluster.servers is {}, but the strategy \"{}\" uses no servers; set it to 0 or choose {}",
         servers, job.strategy.kind, one_of(kinds_with_servers()));
  }
}

/// A copy of a shard is on another server.
void check_replicas(const Job& job) {
  if (job.strategy.replicas == 1 || job.cluster.servers > 1) return;
  fail(ErrorCode::invalid,
       "strategy.replicas is {}, but there is no other server for a copy: cluster.servers is {}; "
       "set "
       "it to 2 or more",
       job.strategy.replicas, job.cluster.servers);
}

void check_factors(const StrategyOptions& strategy) {
  if (!strategy.factors.value_or(false) || strategy.compression.kind == "none") return;
  fail(ErrorCode::invalid,
       "strategy.factors is set, and strategy.compression.kind is \"{}\"; gradients travel as "
       "factors or compressed, not both",
       strategy.compression.kind);
}

/// With momentum 1 nothing that was ever added would fade.
void check_outer(const StrategyOptions& strategy) {
  if (strategy.outer.kind == "mean" || strategy.outer.momentum < 1) return;
  fail(ErrorCode::invalid, "strategy.outer.momentum is {}; it must be below 1",
       strategy.outer.momentum);
}

}  // namespace

void check_strategy(const Job& job) {
  check_keys_are_read(job);
  check_quorum(job.strategy, job.cluster.workers);
  check_push(job.strategy);
  check_compression(job.strategy);
  check_momentum(job);
  check_servers(job);
  check_replicas(job);
  check_factors(job.strategy);
  check_outer(job.strategy);
}

}  // namespace cohort::job
