#pragma once

#include <cohort/job.h>

#include <cstddef>
#include <span>

#include "base/fail.h"
#include "compression/codec.h"
#include "gossip/topology.h"

namespace cohort::gossip {

/// What the two kinds of mail have in common. A worker's *mail* is what it puts into the boxes to
/// its neighbours, compressed or not, and what it makes of what it finds in its own:
/// parameter_mail.h merges models, gradient_mail.h adds up gradients.

/// What a worker sends, and to whom.
struct MailOptions {
  Topology topology = Topology::all;
  GossipPlace place = {};
  CompressionOptions compression = {};  ///< Of any kind but auto.
  compression::CodecShape shape = {};   ///< Of the vectors that travel.
};

/// Of how many pieces of work gradients are, and the learning rates of the steps that these belong
/// to, added up: whoever applies a sum of gradients knows by it which share of a step it is, and
/// with which rate.
struct Pieces {
  double count = 0;
  double rates = 0;

  Pieces& operator+=(const Pieces& other) {
    count += other.count;
    rates += other.rates;
    return *this;
  }

  /// The mean rate; `none` where there are no pieces.
  double rate_or(double none) const { return count > 0 ? rates / count : none; }
};

/// The floats of a message that has them as they are. Throws Error(corrupt) where it has not
/// `count` of them.
inline std::span<const float> floats_of_message(std::span<const std::byte> message,
                                                std::size_t count) {
  if (message.size() != count * sizeof(float)) {
    fail(ErrorCode::corrupt, "a message of {} bytes arrived where {} floats were expected",
         message.size(), count);
  }
  return {reinterpret_cast<const float*>(message.data()), count};
}

}  // namespace cohort::gossip
