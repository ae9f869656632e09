#pragma once

#include "compression/codec.h"

namespace cohort {

/// "int8": every block of 1024 floats becomes a scale (its largest magnitude / 127) and a byte a
/// float. A float between two steps of the scale goes up or down by chance, so that its expectation
/// is itself. Messages are the same for the same seed, place in the sequence of messages and
/// floats. Infinity counts as the largest finite float, NaN as 0, and so do blocks below 1e-30.
std::unique_ptr<Codec> make_int8_codec(std::size_t count, std::uint64_t seed);

}  // namespace cohort
