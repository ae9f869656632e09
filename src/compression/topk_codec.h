#pragma once

#include "compression/codec.h"

namespace cohort {

/// "topk": only the max(1, ceil(ratio * count)) values of largest magnitude travel; of equal ones
/// the first. A message, numbers little-endian:
///
///   u32 how many, that many floats by ascending index, that many gaps
///
/// A gap is the number of floats left out before this one, in 7 bits a byte, lowest first, the top
/// bit set on all bytes but a gap's last.
std::unique_ptr<Codec> make_topk_codec(std::size_t count, double ratio);

}  // namespace cohort
