#pragma once

#include <memory>

#include "strategy/strategy.h"

namespace cohort {

/// A worker that makes steps of its own and pushes the change of its parameters now and then.
std::unique_ptr<Strategy> make_delta_push(const StrategyContext& context);

}  // namespace cohort
