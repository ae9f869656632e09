#pragma once

#include "compression/codec.h"

namespace cohort {

/// "sign": every block of 1024 floats becomes a scale (its mean magnitude) and a bit a float.
/// Infinity counts as the largest finite float; NaN adds nothing to the mean.
std::unique_ptr<Codec> make_sign_codec(std::size_t count);

}  // namespace cohort
