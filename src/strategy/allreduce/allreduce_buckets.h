#pragma once

#include <memory>

#include "strategy/strategy.h"

namespace cohort {

/// Synchronous data parallelism by messages: every rank has the whole model, the gradients are
/// all-reduced in buckets by a schedule (ring, direct, tree), and every rank makes the same update.
/// Where the network does the sending, buckets travel while the backward pass still runs.
std::unique_ptr<Strategy> make_allreduce_buckets(const StrategyContext& context);

}  // namespace cohort
