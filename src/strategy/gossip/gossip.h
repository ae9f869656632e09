#pragma once

#include <memory>
#include <string_view>

#include "strategy/strategy.h"

namespace cohort {

/// Training without a centre: every worker has a model of its own, makes its own steps on the parts
/// of batches it gets, sends to peers and merges what has arrived from them; nobody waits for
/// anybody. meet() makes one model of all. Clipping looks at the gradient of the worker's own part
/// alone.

/// What its workers leave in TrainingState::own: the age of the model, and gradients in their mean
/// over the peers, with the pieces they are of and these' rate.
inline constexpr std::string_view kModelAge = "steps in this worker's model";
inline constexpr std::string_view kUntoldGradients = "gradients that peers were not told";

/// What travels are parameters, merged by push-sum (Lian et al. 2018, Assran et al. 2019).
std::unique_ptr<Strategy> make_parameter_gossip(const StrategyContext& context);

/// What travels are gradients, which everybody applies.
std::unique_ptr<Strategy> make_gradient_gossip(const StrategyContext& context);

}  // namespace cohort
