#pragma once

#include "collective/compressed/gradient_exchange.h"

namespace cohort {

/// For lowrank, as PowerSGD does it: the ranks all-reduce the left factors of their matrices (with
/// what travels plain), make the sum orthonormal, project their own matrices on it and all-reduce
/// the right factors. The result is the best that the common left factors can say of the sum, and a
/// rank sends no more with many ranks than with two.
std::unique_ptr<GradientExchange> make_lowrank_exchange(const ExchangeOptions& options);

}  // namespace cohort
