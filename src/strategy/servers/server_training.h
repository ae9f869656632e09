#pragma once

#include <memory>

#include "strategy/strategy.h"

namespace cohort {

/// Training with parameter servers, and averaging by a centre, which is the same with other words:
/// workers push gradients every step, or every few of their own steps the change of their
/// parameters; the servers make updates of them by their rules (server_options.h) and hand the
/// parameters back.
std::unique_ptr<Strategy> make_server_training(const StrategyContext& context);

}  // namespace cohort
