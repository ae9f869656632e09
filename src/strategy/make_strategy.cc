#include "strategy/make_strategy.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/names.h"
#include "strategy/allreduce/factor_exchange.h"

namespace cohort::strategy {
namespace {

std::unique_ptr<Strategy> make_allreduce(const StrategyContext& context) {
  const std::string& compression = context.options.compression.kind;
  const bool shares_memory = context.engine.shared_regions() != nullptr;
  const bool is_auto = compression == "auto";
  if (compression != "none" && !(is_auto && shares_memory)) {
    // What is exact and this small needs no codec.
    return is_auto && FactorExchange::suffice(context) ? make_allreduce_buckets(context)
                                                       : make_allreduce_compressed(context);
  }
  // Reading gradients where they are beats every way of sending them.
  const bool in_place = context.options.algorithm == "auto" || context.engine.world() == 1;
  if (in_place && shares_memory) return make_allreduce_in_place(context);
  return make_allreduce_buckets(context);
}

std::unique_ptr<Strategy> make_with_servers(const StrategyContext& context) {
  return pushes_deltas(context.options) ? make_delta_push(context) : make_gradient_push(context);
}

std::unique_ptr<Strategy> make_gossip(const StrategyContext& context) {
  return context.options.send == "gradients" ? make_gradient_gossip(context)
                                             : make_parameter_gossip(context);
}

/// A row per strategy.kind; make_strategy_test.cc compares them with kinds/strategy_table.h.
struct Kind {
  const char* name;
  std::unique_ptr<Strategy> (*make)(const StrategyContext& context);
};

constexpr Kind kKinds[] = {
    {"allreduce", make_allreduce},
    {"parameter-server", make_with_servers},
    {"averaging", make_with_servers},
    {"gossip", make_gossip},
};

}  // namespace

void StepOutcome::count(int rank, const Vote& vote) {
  loss += vote.loss;
  stop |= vote.stop;
  save |= vote.save;
  if (!std::isfinite(vote.loss) && diverged_rank < 0) diverged_rank = rank;
}

bool Strategy::any_worker(bool own) {
  std::array<std::int64_t, 1> count = {own ? 1 : 0};
  sum_over_workers(count);
  return count[0] > 0;
}

bool pushes_deltas(const StrategyOptions& options) {
  return options.kind == "averaging" || options.push == "delta";
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

}  // namespace cohort::strategy
