#include "base/nearest_name.h"
#include "strategy/allreduce_buckets.h"
#include "strategy/allreduce_in_place.h"
#include "strategy/strategy.h"

namespace cohort {
namespace {

std::unique_ptr<Strategy> make_allreduce(const StrategyContext& context) {
  // Reading gradients where they are beats every way of sending them.
  const bool in_place = context.options.algorithm == "auto" || context.engine.world() == 1;
  if (in_place && context.engine.shared_regions() != nullptr) {
    return make_allreduce_in_place(context);
  }
  return make_allreduce_buckets(context);
}

}  // namespace

const std::vector<std::string>& strategy_kinds() {
  static const std::vector<std::string> kinds = {"allreduce"};
  return kinds;
}

std::unique_ptr<Strategy> make_strategy(const StrategyContext& context) {
  check_known("strategy", context.options.kind, strategy_kinds());
  return make_allreduce(context);
}

}  // namespace cohort
