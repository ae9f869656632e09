#pragma once

#include "collective/compressed/gradient_exchange.h"

namespace cohort {

/// For codecs with messages as long as their vectors (fp16, bf16, int8). The gradients are cut into
/// a segment per rank, which owns it:
///
///   1. every rank encodes its part of each segment and sends it to the owner;
///   2. the owner decodes and sums the parts in the order of the ranks, its own as it is;
///   3. the owner encodes the sum and sends it to all, who decode it, as does the owner itself.
///
/// Both encodings keep what they left out. A rank sends 2 (world - 1) / world of a message of the
/// whole: no more with many ranks than with two.
std::unique_ptr<GradientExchange> make_segment_exchange(const ExchangeOptions& options);

}  // namespace cohort
