#pragma once

#include <memory>

#include "strategy/strategy.h"

namespace cohort {

/// Training without a centre: every worker has a model of its own, makes its own steps on the parts
/// of batches it gets, sends to peers and merges what has arrived from them; nobody waits for
/// anybody. What travels are parameters, merged by push-sum (Lian et al. 2018, Assran et al. 2019),
/// or gradients, which everybody applies. meet() makes one model of all.
///
/// Clipping looks at the gradient of the worker's own part alone.
std::unique_ptr<Strategy> make_gossip(const StrategyContext& context);

}  // namespace cohort
