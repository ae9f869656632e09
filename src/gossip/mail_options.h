#pragma once

#include <cohort/job.h>

#include <cstdint>

#include "compression/codec.h"
#include "gossip/model_age.h"
#include "gossip/topology.h"

namespace cohort {

/// What a worker sends, and to whom.
struct MailOptions {
  Topology topology = Topology::all;
  GossipPlace place = {};
  AgeRule ages = {};                    ///< Of parameters.
  CompressionOptions compression = {};  ///< Of any kind but auto.
  CodecShape shape = {};                ///< Of the vectors that travel.
};

}  // namespace cohort
