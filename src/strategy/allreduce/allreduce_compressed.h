#pragma once

#include <memory>

#include "strategy/strategy.h"

namespace cohort {

/// Synchronous data parallelism with gradients that travel encoded, in the way that fits the codec
/// (gradient_exchange.h); what a message leaves out is added to the next gradients. Votes and float
/// buffers travel as they are. Every rank decodes the same bits and makes the same update.
///
/// topk and sign with SGD's plain momentum: the momentum is applied before gradients are encoded,
/// and the update is made without it.
///
/// With compression "auto" the first steps try plain messages (in buckets, during the backward pass
/// where the network does the sending) and some codecs, and then keep to the fastest.
std::unique_ptr<Strategy> make_allreduce_compressed(const StrategyContext& context);

}  // namespace cohort
