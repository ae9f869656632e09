#pragma once

#include <memory>

#include "strategy/strategy.h"

namespace cohort {

/// Synchronous data parallelism of ranks that share memory, or of one rank alone: nothing is sent.
/// Parameters and optimizer slots exist once per host; every rank's gradients can be read by all.
/// After the backward pass each rank takes the segment it owns, adds up that segment of everybody's
/// gradients and updates the parameters there, block by block while the block is in the cache. Two
/// barriers a step. `context.engine` must have shared regions.
std::unique_ptr<Strategy> make_allreduce_in_place(const StrategyContext& context);

}  // namespace cohort
