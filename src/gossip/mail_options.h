#pragma once

#include <cohort/job.h>

#include <cstdint>

#include "compression/codec.h"
#include "gossip/topology.h"

namespace cohort {

/// What a worker sends, and to whom.
struct MailOptions {
  Topology topology = Topology::all;
  GossipPlace place = {};
  CompressionOptions compression = {};  ///< Of any kind but auto.
  CodecShape shape = {};                ///< Of the vectors that travel.
};

}  // namespace cohort
