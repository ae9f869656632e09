#include <algorithm>
#include <array>

#include "base/rows.h"
#include "strategy/allreduce/allreduce_buckets.h"
#include "strategy/allreduce/allreduce_compressed.h"
#include "strategy/allreduce/allreduce_in_place.h"
#include "strategy/gossip/gossip.h"
#include "strategy/servers/server_training.h"
#include "strategy/strategy.h"

namespace cohort {
namespace {

std::unique_ptr<Strategy> make_allreduce(const StrategyContext& context) {
  const std::string& compression = context.options.compression.kind;
  const bool shares_memory = context.engine.shared_regions() != nullptr;
  if (compression != "none" && !(compression == "auto" && shares_memory)) {
    return make_allreduce_compressed(context);
  }
  // Reading gradients where they are beats every way of sending them.
  const bool in_place = context.options.algorithm == "auto" || context.engine.world() == 1;
  if (in_place && shares_memory) return make_allreduce_in_place(context);
  return make_allreduce_buckets(context);
}

std::unique_ptr<Strategy> make_gossip(const StrategyContext& context) {
  return context.options.send == "gradients" ? make_gradient_gossip(context)
                                             : make_parameter_gossip(context);
}

struct Kind {
  const char* name;
  std::unique_ptr<Strategy> (*make)(const StrategyContext& context);
};

constexpr Kind kKinds[] = {
    {"allreduce", make_allreduce},
    {"parameter-server", make_server_training},
    {"averaging", make_server_training},
    {"gossip", make_gossip},
};

}  // namespace

bool Strategy::any_worker(bool own) {
  std::array<std::int64_t, 1> count = {own ? 1 : 0};
  sum_over_workers(count);
  return count[0] > 0;
}

std::int64_t steps_alone(const StrategyOptions& options, std::int64_t steps_per_epoch) {
  if (options.kind != "averaging") return std::max<std::int64_t>(options.local_steps, 1);
  return options.every > 0 ? options.every : steps_per_epoch;
}

std::vector<std::string> made_strategies() {
  return names_of(kKinds);
}

std::unique_ptr<Strategy> make_strategy(const StrategyContext& context) {
  return row_named("strategy", context.options.kind, kKinds).make(context);
}

}  // namespace cohort
