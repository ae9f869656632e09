#pragma once

#include "collective/compressed/gradient_exchange.h"

namespace cohort {

/// For codecs whose messages are so short that everyone can have everybody's (sign, topk), and
/// whose sums would not be as short. Each rank encodes all its gradients and sends the message to
/// all; everybody decodes and adds the messages up in the order of the ranks.
std::unique_ptr<GradientExchange> make_gather_exchange(const ExchangeOptions& options);

}  // namespace cohort
