#pragma once

#include <memory>

#include "strategy/strategy.h"

namespace cohort {

/// A worker whose gradients go to the servers every step, see gradient_push.cc.
std::unique_ptr<Strategy> make_gradient_push(const StrategyContext& context);

}  // namespace cohort
