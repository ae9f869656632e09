#pragma once

#include "collective/compressed/gradient_exchange.h"

namespace cohort {

/// For "none": a plain all-reduce.
std::unique_ptr<GradientExchange> make_whole_exchange(const ExchangeOptions& options);

}  // namespace cohort
