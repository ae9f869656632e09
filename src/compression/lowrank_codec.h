#pragma once

#include "compression/codec.h"

namespace cohort {

/// "lowrank": every matrix of the shape travels as two factors of `rank` columns, what is in no
/// matrix plain; see LowRank. A message is floats: left factors, right factors, plain. A matrix
/// that holds a number that is not finite travels as zero.
std::unique_ptr<Codec> make_lowrank_codec(const CodecShape& shape, std::int64_t rank,
                                          std::uint64_t seed);

}  // namespace cohort
